"""The trainer of carried weights against NumPy, and its safeguards."""

import mxnet as mx
import numpy as np
import pytest
from support.examples import plan_with, release_with
from support.models import loss_and_gradients, part, random_batch, tiny_bert
from support.refusals import one_sentence

from edp_mx.dp.privacy.flat import FlatGradients
from edp_mx.dp.privacy.layers import layers_of
from edp_mx.dp.privacy.mechanism import Mechanism
from edp_mx.dp.privacy.noise import NoiseStream
from edp_mx.dp.privacy.norm_clipping import LoopClipping
from edp_mx.dp.weights import weights_of
from edp_mx.errors import UserError
from edp_mx.models.rgp import RGP, carried_weights
from edp_mx.models.rgp_trainer import CarriedTrainer
from edp_mx.runtime.distributed import Workers, start

LENGTHS = [3, 1, 5, 2]
RATE = 0.25


class Steps:
    """A BERT with carriers, the mechanism around it, and its trainer."""

    def __init__(self, *, max_grad_norm=1e9, workers=None):
        workers = workers or start()
        self.model = tiny_bert(trained="rgp", rgp_rank=2)
        self.carried = carried_weights(self.model.encoder)
        self.flat = FlatGradients(layers_of(self.model))
        scales = (1.0,) * len(self.flat.layers)
        release = release_with(
            micro_batch_size=len(LENGTHS), max_grad_norm=max_grad_norm, layer_scales=scales
        )
        self.mechanism = Mechanism(
            plan=plan_with(release),
            clipping=LoopClipping(flat=self.flat, release=release),
            noise=NoiseStream.from_operating_system(),
        )
        self.trainer = CarriedTrainer(
            flat=self.flat, carried=self.carried, workers=workers,
            optimizer="sgd", optimizer_params={"learning_rate": RATE},
        )  # fmt: skip

    def privatise(self, batch):
        alone = [lambda row=row: self.model.loss(part(batch, row)) for row in range(len(LENGTHS))]
        return self.mechanism.privatise(alone, epoch=0)


def full_gradient(values, batch):
    """The mean gradient of the same model without carriers, by parameter."""
    plain = tiny_bert()
    for name, parameter in plain.collect_params().items():
        parameter.set_data(mx.nd.array(values[name]))
    _, gradients = loss_and_gradients(plain, batch)
    return {name: gradient / len(LENGTHS) for name, gradient in gradients.items()}


def test_steps_move_each_weight_by_the_projection_of_its_whole_gradient(generator):
    batch, steps = random_batch(generator, LENGTHS, "bert"), Steps()
    for _ in range(3):
        before = weights_of(steps.model)
        gradients = full_gradient(before, batch)
        steps.trainer.step_private(steps.privatise(batch))
        after = weights_of(steps.model)
        for weight in steps.carried:
            name, (left, right) = weight.updated.name, (before[c.name] for c in weight.carriers)
            gradient = gradients[name].astype(np.float64)
            outside = gradient - left @ (left.T @ gradient)
            expected = outside @ right.T @ right + left @ (left.T @ gradient)
            np.testing.assert_allclose(before[name] - after[name], RATE * expected, atol=2e-6)
            assert np.abs(before[name] - after[name]).max() > 1e-6
        for name in before:
            if name.startswith(("intent_", "slot_")):
                moved = before[name] - after[name]
                np.testing.assert_allclose(moved, RATE * gradients[name], atol=2e-6)
            elif not RGP().trains(name) and not any(name == w.updated.name for w in steps.carried):
                np.testing.assert_array_equal(after[name], before[name])


def test_carriers_follow_how_far_the_weights_have_moved(generator):
    batch, steps = random_batch(generator, LENGTHS, "bert"), Steps()
    start_values = weights_of(steps.model)
    steps.trainer.step_private(steps.privatise(batch))
    after = weights_of(steps.model)
    for weight in steps.carried:
        moved = (after[weight.updated.name] - start_values[weight.updated.name]).astype(np.float64)
        left, right = (after[carrier.name] for carrier in weight.carriers)
        rows = left.T @ moved  # (r, d), which R must span
        outside = rows - rows @ right.T @ right
        assert np.linalg.norm(outside) < 1e-4 * np.linalg.norm(rows)


def test_a_release_is_used_once_and_a_raw_gradient_never(generator):
    batch, steps = random_batch(generator, LENGTHS, "bert"), Steps()
    released = steps.privatise(batch)
    steps.trainer.step_private(released)
    assert not any(p._data[0]._fresh_grad for layer in steps.flat.layers for p in layer.parameters)
    one_sentence("raw or were released before", steps.trainer.step_private, released)
    released = steps.privatise(batch)
    loss_and_gradients(steps.model, batch)
    one_sentence("raw or were released before", steps.trainer.step_private, released)


class Other(Workers):
    """One of two workers, the other of which has other carriers."""

    def gather(self, value):
        return [value, "others"]


def test_workers_with_other_carriers_are_refused(generator):
    batch = random_batch(generator, LENGTHS, "bert")
    start()
    steps = Steps(workers=Other(0, 2, 0))
    with pytest.raises(UserError, match="the workers disagree on the carriers of the gradients"):
        steps.trainer.step_private(steps.privatise(batch))
