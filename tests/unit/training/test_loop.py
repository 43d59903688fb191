"""What one step may carry into the next: the weights, and nothing else."""

import mxnet as mx
import numpy as np
from support.draws import GivenDraws
from support.models import clc_and_corpus

from edp_mx.privacy.clipping import Unclipped
from edp_mx.privacy.flat import FlatGradients
from edp_mx.privacy.layers import layers_of
from edp_mx.privacy.mechanism import WithoutPrivacy
from edp_mx.runtime.distributed import Workers
from edp_mx.training.config import Schedule, TrainingConfig
from edp_mx.training.gradient import seed_dropout
from edp_mx.training.loop import TrainingLoop

CONSTANT = Schedule()
ALONE = Workers(rank=0, size=1, local_rank=0, local_size=1)


class Recorder:
    """Stands for the trainer: keeps each step's gradient and updates nothing."""

    context = mx.cpu()
    learning_rate = 1.0

    def set_learning_rate(self, rate):
        self.learning_rates.append(rate)

    def __init__(self, flat):
        self.flat, self.gradients, self.learning_rates = flat, [], []

    def step_private(self, released):
        released.use(self.flat)
        self.gradients.append(self.flat.gradients().copy())


def train(*batches, num_epochs=1, schedule=CONSTANT, size=None, dropout=0.5):
    """Trains on the batches; returns what stood for the trainer."""
    model, corpus = clc_and_corpus(size=300, dropout=dropout)
    flat = FlatGradients(layers_of(model))
    trainer = Recorder(flat)
    size = len(batches[0]) if size is None else size
    trainer.summaries = list(TrainingLoop(
        model=model, corpus=corpus,
        sampler=GivenDraws(*([batch] for batch in batches), size=size),
        mechanism=WithoutPrivacy(clipping=Unclipped(flat=flat)), trainer=trainer,
        config=TrainingConfig(epochs=num_epochs, schedule=schedule, seed=0),
        workers=ALONE, permit=lambda _: len(batches),
    ).epochs())  # fmt: skip
    return trainer


def test_the_learning_rate_follows_its_schedule_over_all_epochs():
    trainer = train(*[np.arange(4)] * 2, num_epochs=2, schedule=Schedule("linear", 0.5))
    assert trainer.learning_rates == [0.5, 1.0, 1.0, 0.5]


def test_the_divisor_is_the_public_size_and_never_the_drawn_one():
    """Against single records: the gradient of any draw is Σ of theirs over the expected size."""
    drawn = [np.arange(7), np.array([3]), np.arange(2)]
    singly = train(*([i] for i in range(7)), size=1, dropout=0.0)
    trainer = train(*drawn, size=2.5, dropout=0.0)
    for indices, gradient in zip(drawn, trainer.gradients):
        expected = sum(singly.gradients[i].astype(np.float64) for i in indices) / 2.5
        np.testing.assert_allclose(gradient, expected, rtol=1e-4, atol=1e-6)
    (whole,) = train(drawn[0], size=2.5, dropout=0.0).summaries
    np.testing.assert_allclose(whole.loss, 7 * singly.summaries[0].loss / 2.5, rtol=1e-5)


def test_an_empty_micro_batch_is_a_step_with_a_gradient_of_zero():
    nothing = np.arange(0)
    trainer = train(nothing, np.arange(4), nothing, nothing, size=2.5)
    assert len(trainer.gradients) == 4
    assert [bool(gradient.any()) for gradient in trainer.gradients] == [False, True, False, False]
    assert trainer.summaries[0].steps == 4
    alone = train(np.arange(4), size=2.5)  # at step 0: other dropout, but a loss of its own size
    assert 0 < trainer.summaries[0].loss < alone.summaries[0].loss
    assert train(nothing, nothing, size=1).summaries[0].loss == 0


def test_the_length_of_an_utterance_does_not_reach_the_next_step():
    """Else dropout's generator would carry it there, around the clipping."""
    short, longer, next_batch = np.arange(4), np.arange(296, 300), np.arange(100, 104)
    after_short, after_longer = (train(first, next_batch).gradients[1] for first in (short, longer))
    assert (after_short == after_longer).all()


def test_neighbouring_places_do_not_share_masks():
    masks = []
    for step in range(20):
        seed_dropout(0, 0, 0, step)
        with mx.autograd.train_mode():
            masks.append(mx.nd.Dropout(mx.nd.ones((5000,)), p=0.5).asnumpy() > 0)
    for i in range(20):
        for j in range(i):
            assert abs((masks[i] == masks[j]).mean() - 0.5) < 6 * 0.5 / 5000**0.5
