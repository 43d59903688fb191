"""From draws to losses of units and steps: what a gradient may depend on, and the rest."""

import mxnet as mx
import numpy as np
import pytest
from support.draws import GivenDraws, draw_of, singly
from support.examples import plan_with, release_with
from support.models import FAMILIES, clc_and_corpus, part, random_batch, tiny

from edp_mx.dp.privacy.clipping import Unclipped
from edp_mx.dp.privacy.flat import FlatGradients
from edp_mx.dp.privacy.ghost.clipping import GhostClipping
from edp_mx.dp.privacy.layers import layers_of
from edp_mx.dp.privacy.mechanism import Mechanism, WithoutPrivacy
from edp_mx.dp.privacy.noise import NoiseStream
from edp_mx.dp.privacy.norm_clipping import LoopClipping
from edp_mx.dp.unit_losses import UnitLosses, chunks_of, seed_dropout
from edp_mx.runtime.distributed import Workers
from edp_mx.training.config import Schedule, TrainingConfig
from edp_mx.training.loop import TrainingLoop

KEY, OTHER = bytes(31) + b"\2", bytes(31) + b"\1"
PLACE = {"seed": 0, "rank": 0, "epoch": 0, "step": 0}


class Keyed:
    """Stands for a mechanism: a clipping and a key."""

    def __init__(self, clipping, key):
        self.clipping, self.mask_key = clipping, key


class Subject:
    """A model, a corpus, and the flat gradients."""

    def __init__(self, model, corpus):
        self.model, self.corpus = model, corpus
        self.flat = FlatGradients(layers_of(model))

    def clipping(self, name, *, c=1e9, chunk_size=64, release=None):
        scales = (1.0,) * len(self.flat.layers)
        release = release or release_with(max_grad_norm=c, layer_scales=scales)
        if name == "none":
            return Unclipped(flat=self.flat)
        if name == "loop":
            return LoopClipping(flat=self.flat, release=release)
        return GhostClipping(flat=self.flat, network=self.model, release=release,
                             chunk_size=chunk_size)  # fmt: skip

    def losses(self, clipping, *, unit, key=KEY, size=1.0, k=1, seed=0, rank=0):
        sampler = GivenDraws(unit=unit, size=size, k=k)
        return UnitLosses(self.model.loss, self.corpus.batch, lengths=self.corpus.lengths,
                          sampler=sampler, mechanism=Keyed(clipping, key), seed=seed,
                          rank=rank)  # fmt: skip

    def clipped(self, units, *, name="loop", unit="utterance", c=1e9, chunk_size=64, epoch=0,
                step=0, **settings):  # fmt: skip
        clipping = self.clipping(name, c=c, chunk_size=chunk_size)
        losses = self.losses(clipping, unit=unit, **settings)
        return clipping.clip(losses(losses.batches(draw_of(units)), epoch=epoch, step=step))

    def taken(self, units, **settings):
        values, factor = self.clipped(units, **settings).take()
        return factor * values.astype(np.float64)


class Rows:
    """Stands for an encoded corpus: the rows of one batch."""

    def __init__(self, utterances):
        self.lengths, self._utterances = utterances.lengths, utterances

    def batch(self, indices):
        assert len(indices)
        made = part(self._utterances, np.asarray(indices))
        assert (made.indices == indices).all()
        return made


def small(family, seed=3):
    lengths = [3, 5, 2, 4, 1, 7, 6, 3, 2, 5, 4, 4, 1, 6, 2, 3]
    return Subject(tiny(family), Rows(random_batch(np.random.default_rng(seed), lengths, family)))


@pytest.fixture(scope="module")
def subject():
    """A model with dropout, and a corpus sorted by length."""
    return Subject(*clc_and_corpus(size=120, dropout=0.5))


@pytest.mark.parametrize(
    "unit, mine, crowds",
    [
        ("utterance", [7], [[[0], [1]], [[110], [119]], [[3], [50], [90]]]),
        ("user", [7, 30, 31], [[[0], [1, 2]], [[110, 119, 3, 4]]]),
    ],
)
def test_a_unit_adds_the_same_whoever_else_is_drawn(subject, unit, mine, crowds):
    """Else, with masks that move on, one unit could change the gradients of all after it."""
    alone = subject.taken([mine], unit=unit, c=0.1)
    for others in crowds:
        with_it = subject.taken([others[0], mine, *others[1:]], unit=unit, c=0.1)
        without = subject.taken(others, unit=unit, c=0.1)
        np.testing.assert_allclose(with_it - without, alone, atol=1e-7)


def test_masks_differ_by_record_step_epoch_worker_seed_and_key_and_repeat_otherwise(subject):
    for unit in ("utterance", "user"):
        first = subject.taken([[7]], unit=unit)
        assert (first == subject.taken([[7]], unit=unit)).all()
        for place in PLACE:
            assert abs(first - subject.taken([[7]], unit=unit, **{place: 1})).max() > 1e-4
        assert abs(first - subject.taken([[7]], unit=unit, key=OTHER)).max() > 1e-4


def test_masks_of_micro_batches_are_those_of_as_many_single_workers(subject):
    """Lane rank · k + j, and neither the key nor the records are in them."""
    unit = {"unit": "micro_batch", "size": 2.0}
    lanes = [subject.taken([[2, 9]], rank=rank, **unit) for rank in range(4)]
    together = [subject.taken([[2, 9]] * 4, k=4, **unit)]
    together += [sum(subject.taken([[2, 9]] * 2, k=2, rank=r, **unit) for r in range(2))]
    for found in together:
        np.testing.assert_allclose(found, sum(lanes), rtol=1e-6, atol=1e-6)
    assert abs(lanes[0] - lanes[1]).max() > 1e-4
    assert (lanes[0] == subject.taken([[2, 9]], key=OTHER, **unit)).all()
    # An empty micro-batch keeps its lane.
    found = subject.taken([[], [2, 9], [], []], k=4, **unit)
    np.testing.assert_allclose(found, lanes[1], rtol=1e-6, atol=1e-6)


def test_masks_of_chunks_are_secret_even_where_a_micro_batch_is_alone_in_its_chunk(subject):
    """Whether it is depends on the data: its masks may not."""
    settings = {"unit": "micro_batch", "size": 2.0, "name": "ghost"}
    first = subject.taken([[2, 9]], **settings)
    assert abs(first - subject.taken([[2, 9]], key=OTHER, **settings)).max() > 1e-4


@pytest.mark.parametrize("unit, divisor", [("micro_batch", 2.5), ("utterance", 1), ("user", 1)])
@pytest.mark.parametrize("name", ["loop", "ghost", "none"])
def test_only_a_micro_batch_is_divided_and_by_its_public_size(unit, divisor, name):
    """Never by how many were drawn."""
    subject = small("clc")
    units = singly([3, 9, 4]) if unit == "utterance" else [[3, 9], [4]]
    rows = [record for drawn in units for record in drawn]
    whole = subject.model.loss(subject.corpus.batch(np.array(rows))).sum()
    clipped = subject.clipped(units, unit=unit, size=2.5, k=2, name=name)
    assert float(clipped.loss.asscalar()) == pytest.approx(
        float(whole.asscalar()) / divisor, rel=1e-5
    )
    assert clipped.num_units == len(units)


def chunks(units, lengths, size):
    return list(chunks_of(draw_of(units), np.asarray(lengths), chunk_size=size))


def test_units_are_in_chunks_with_their_like():
    units = [[0, 1, 2], [3], [], [4, 5], [6], [7, 8], [9, 10, 11, 12]]
    lengths = [9, 1, 1, 5, 2, 2, 3, 1, 1, 1, 1, 1, 1]
    assert chunks(units, lengths, 1) == [[4], [1], [5], [3], [0], [6]]  # loop
    assert chunks(units, lengths, 3) == [[4, 1], [5], [3], [0], [6]]
    assert chunks(units, lengths, 4) == [[4, 1], [5, 3], [0], [6]]
    assert chunks(units, lengths, 8) == [[4, 1, 5, 3], [0, 6]]
    assert chunks(units, lengths, 6) == [[4, 1, 5], [3, 0], [6]]
    assert chunks(units, lengths, 10**9) == [[4, 1, 5, 3, 0, 6]]
    assert chunks([[], []], lengths, 4) == []


def test_similar_lengths_share_a_chunk_and_no_record_is_lost(subject, generator):
    drawn = generator.permutation(len(subject.corpus))[:30]
    losses = subject.losses(subject.clipping("ghost", chunk_size=8), unit="utterance")
    batches = [chunk.batch for chunk in losses.batches(draw_of(singly(drawn)))]
    assert sorted(np.concatenate([batch.indices for batch in batches])) == sorted(drawn)
    lengths = np.concatenate([batch.lengths for batch in batches])
    assert (np.diff(lengths) >= 0).all() and lengths[0] < lengths[-1]


USERS = [[0, 4, 9], [1], [2, 3, 5, 6, 7], [], [8, 10]]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("c", [0.5, 20.0, 1e9])
def test_ghost_clips_users_of_any_size_as_the_loop_does(family, c):
    subject = small(family)
    expected = subject.taken(USERS, unit="user", c=c)
    most = 1e-5 * abs(expected).max()
    for size in (1, 4, 11, 64):
        found = subject.taken(USERS, unit="user", c=c, name="ghost", chunk_size=size)
        np.testing.assert_allclose(found, expected, rtol=0, atol=most, err_msg=f"chunks of {size}")


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("unit", ["utterance", "user"])
def test_each_user_is_clipped_as_one(family, unit):
    """By single records the sum of one user's three clipped gradients may be 3 C long."""
    subject, user = small(family), [0, 4, 9]
    units = [user] if unit == "user" else singly(user)
    raw = sum(subject.taken([[record]], unit="utterance") for record in user)
    found = subject.taken(units, unit=unit, c=0.01)
    if unit == "user":
        assert np.linalg.norm(found) == pytest.approx(0.01, rel=1e-5)
        np.testing.assert_allclose(found, raw * 0.01 / np.linalg.norm(raw), rtol=1e-3, atol=1e-8)
    else:
        assert 0.01 < np.linalg.norm(found) <= 0.03 * (1 + 1e-6)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", ["loop", "ghost"])
def test_one_worker_with_eight_micro_batches_is_two_with_four_is_eight_with_one(family, name):
    """Without noise and dropout; the mean over workers is what the trainer makes."""
    subject = small(family)
    eight = [[2 * j, 2 * j + 1] for j in range(8)]
    releases = []
    for workers in (1, 2, 8):
        k = 8 // workers
        sent = []
        for rank in range(workers):
            units = eight[rank * k : (rank + 1) * k]
            release = release_with(
                unit="micro_batch", num_workers=workers, micro_batch_size=2, max_grad_norm=3.0,
                layer_scales=(1.0,) * len(subject.flat.layers), micro_batches_per_worker=k,
            )  # fmt: skip
            assert release.num_micro_batches == 8
            mechanism = Mechanism(
                plan=plan_with(release), clipping=subject.clipping(name, release=release),
                noise=NoiseStream.from_operating_system(),
            )  # fmt: skip
            losses = UnitLosses(
                subject.model.loss, subject.corpus.batch, lengths=subject.corpus.lengths,
                sampler=GivenDraws(size=2, k=k), mechanism=mechanism, seed=0, rank=rank,
            )  # fmt: skip
            batches = losses.batches(draw_of(units))
            mechanism.privatise(losses(batches, epoch=0, step=0), epoch=0).use(subject.flat)
            sent.append(subject.flat.gradients().astype(np.float64))
            assert mechanism.clipping.take_statistics().units == k
        releases.append(np.mean(sent, axis=0))
    for release in releases[1:]:
        np.testing.assert_allclose(release, releases[0], rtol=0, atol=1e-6)
    assert abs(releases[0]).max() > 1e-2


CONSTANT = Schedule()
ALONE = Workers(rank=0, size=1, local_rank=0)


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


def run_loop(*batches, num_epochs=1, schedule=CONSTANT, size=None, dropout=0.5):
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
        workers=ALONE, permit=lambda _, first, most: min(most, len(batches) - first),
    ).epochs())  # fmt: skip
    return trainer


def test_the_learning_rate_follows_its_schedule_over_all_epochs():
    trainer = run_loop(*[np.arange(4)] * 2, num_epochs=2, schedule=Schedule("linear", 0.5))
    assert trainer.learning_rates == [0.5, 1.0, 1.0, 0.5]


def test_the_divisor_is_the_public_size_and_never_the_drawn_one():
    """Against single records: the gradient of any draw is Σ of theirs over the expected size."""
    drawn = [np.arange(7), np.array([3]), np.arange(2)]
    singly = run_loop(*([i] for i in range(7)), size=1, dropout=0.0)
    trainer = run_loop(*drawn, size=2.5, dropout=0.0)
    for indices, gradient in zip(drawn, trainer.gradients):
        expected = sum(singly.gradients[i].astype(np.float64) for i in indices) / 2.5
        np.testing.assert_allclose(gradient, expected, rtol=1e-4, atol=1e-6)
    (whole,) = run_loop(drawn[0], size=2.5, dropout=0.0).summaries
    np.testing.assert_allclose(whole.loss, 7 * singly.summaries[0].loss / 2.5, rtol=1e-5)


def test_an_empty_micro_batch_is_a_step_with_a_gradient_of_zero():
    nothing = np.arange(0)
    trainer = run_loop(nothing, np.arange(4), nothing, nothing, size=2.5)
    assert len(trainer.gradients) == 4
    assert [bool(gradient.any()) for gradient in trainer.gradients] == [False, True, False, False]
    assert trainer.summaries[0].steps == 4
    alone = run_loop(np.arange(4), size=2.5)  # at step 0: other dropout, but a loss of its own size
    assert 0 < trainer.summaries[0].loss < alone.summaries[0].loss
    assert run_loop(nothing, nothing, size=1).summaries[0].loss == 0


def test_the_length_of_an_utterance_does_not_reach_the_next_step():
    """Else dropout's generator would carry it there, around the clipping."""
    short, longer, next_batch = np.arange(4), np.arange(296, 300), np.arange(100, 104)
    after_short, after_longer = (
        run_loop(first, next_batch).gradients[1] for first in (short, longer)
    )
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
