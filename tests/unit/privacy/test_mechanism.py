"""One worker's part of Algorithm 1 against the slow form and the golden vectors."""

import json
from pathlib import Path

import mxnet as mx
import numpy as np
import pytest
from mxnet import gluon
from support import algorithm1

from edp_mx.accounting.decay import Decay
from edp_mx.accounting.release import Release
from edp_mx.privacy.flat import FlatGradients
from edp_mx.privacy.layers import Layer
from edp_mx.privacy.mechanism import EDPSGD
from edp_mx.privacy.noise import NoiseStream

GOLDEN = Path(__file__).parents[2] / "golden" / "privacy_vectors.json"
CASES = {case["id"]: case for case in json.loads(GOLDEN.read_text())["cases"]}


class GivenNoise:
    """Stands for a noise stream: hands out given numbers instead of drawn ones."""

    def __init__(self, values):
        self.values, self.position = values, 0

    def scale_and_add(self, array, *, factor, stddev):
        drawn = self.values[self.position : self.position + array.size]
        self.position += array.size
        array *= np.float32(factor)
        array += np.float32(stddev) * drawn

    def scale_and_add_parts(self, array, *, parts, factor):
        for part, stddev in parts:
            self.scale_and_add(array[part], factor=factor, stddev=stddev)


def flat_of(shapes):
    """Flat arrays for layers of one parameter each."""
    layers = []
    for k, shape in enumerate(shapes):
        parameter = gluon.Parameter(f"layer{k}_weight", shape=shape)
        parameter.initialize(mx.init.Zero())
        layers.append(Layer(f"layer{k}", (parameter,)))
    return FlatGradients(layers)


def put(flat, tensors, target):
    """Writes one tensor a layer into a flat array."""
    for segment, tensor in zip(flat.segments, tensors):
        tensor = np.asarray(tensor, np.float32).ravel()
        target[segment.start : segment.start + tensor.size] = tensor
    return target


def get(flat, shapes, source):
    """The layers' tensors in a flat array."""
    return [
        source[segment.start : segment.start + int(np.prod(shape))].reshape(shape)
        for segment, shape in zip(flat.segments, shapes)
    ]


def privatise(tensors, *, release, z=0.0, noise=None, decay=None, epoch=0):
    """What the mechanism makes of one worker's gradient, and the mechanism."""
    shapes = [np.shape(tensor) for tensor in tensors]
    flat = flat_of(shapes)
    stream = (
        NoiseStream.from_operating_system()
        if noise is None
        else GivenNoise(put(flat, noise, np.zeros(flat.size, np.float32)))
    )
    mechanism = EDPSGD(
        release=release, noise_multiplier=z, decay=decay or Decay(), flat=flat, noise=stream
    )
    gradients = put(flat, tensors, flat.gradients())
    mechanism.privatise(gradients, epoch=epoch)
    return get(flat, shapes, gradients), mechanism


def release_of(scales, *, num_workers=1, micro_batch_size=4, c=1.0, variant="published"):
    return Release(
        num_workers=num_workers,
        micro_batch_size=micro_batch_size,
        max_grad_norm=c,
        layer_scales=scales,
        adjacency="replace_one",
        variant=variant,
    )


@pytest.mark.parametrize("case_id", ["e0", "e2"])
def test_golden_vectors_of_algorithm_1(case_id):
    case = CASES[case_id]
    inputs, expected = case["inputs"], case["expected"]
    release = release_of(
        inputs["alpha"],
        num_workers=len(inputs["worker_grads"]),
        c=inputs["C"],
        variant=inputs["variant"],
    )
    sent = []
    for i, gradient in enumerate(inputs["worker_grads"]):
        noise = inputs["noise"][i] if inputs["noise"] else None
        released, mechanism = privatise(gradient, release=release, z=inputs["z"], noise=noise)
        assert mechanism.statistics.norm_sum == pytest.approx(expected["scaled_norms"][i], 1e-6)
        sent.append(released)
    if inputs["variant"] == "calibrated":
        assert inputs["kappa"] == release.kappa
    for k, tensor in enumerate(expected["aggregate"]):
        np.testing.assert_allclose(
            np.mean([worker[k] for worker in sent], axis=0), tensor, rtol=1e-6
        )


@pytest.mark.parametrize("variant", ["published", "calibrated"])
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_equals_the_slow_form(variant, size, generator):
    shapes, scales = [(3, 5), (17,), (2, 2, 2)], (1.0, 0.01, 0.3)
    tensors = [generator.normal(size=shape) * size for shape in shapes]
    noise = [generator.normal(size=shape) for shape in shapes]
    release = release_of(scales, num_workers=5, c=0.7, variant=variant)
    released, _ = privatise(
        tensors, release=release, z=1.3, noise=noise, decay=Decay("exponential", 0.1), epoch=3
    )
    arguments = {
        "max_grad_norm": 0.7,
        "noise_multiplier": 1.3 * np.exp(-0.3),
        "num_workers": 5,
        "scales": scales,
    }
    stddevs = (
        algorithm1.published_stddevs(**arguments)
        if variant == "published"
        else algorithm1.calibrated_stddevs(**arguments, kappa=2.0)
    )
    expected = algorithm1.worker_step(
        [[t] for t in tensors],
        scales=scales,
        max_grad_norm=0.7,
        noise_stddevs=stddevs,
        noise=[[y] for y in noise],
    )
    for tensor, (slow,) in zip(released, expected):
        np.testing.assert_allclose(tensor, slow, rtol=1e-5, atol=1e-6)


def test_no_gradient_leaves_longer_than_the_clipping_norm(generator):
    shapes, scales = [(1000,), (50,)], (1.0, 0.1)
    for size in (1e-20, 1.0, 1e15):
        tensors = [generator.normal(size=shape) * size for shape in shapes]
        released, _ = privatise(tensors, release=release_of(scales, c=0.25))
        assert algorithm1.scaled_norm([[t] for t in released], scales) <= 0.25 * (1 + 1e-6)


@pytest.mark.parametrize("poison", [np.nan, np.inf, -np.inf, 3e38])
def test_a_gradient_that_is_not_finite_counts_as_zero_and_still_gets_noise(poison):
    gradient = np.full((20_000,), poison if poison == 3e38 else 1.0)
    gradient[7] = poison
    released, mechanism = privatise([gradient], release=release_of((1.0,)), z=1.0)
    assert mechanism.statistics.non_finite == 1
    assert np.isfinite(released[0]).all()
    assert released[0].std() == pytest.approx(1.0, rel=0.05)  # 10 standard errors
    assert abs(released[0].mean()) < 6 / 20_000**0.5


def test_a_zero_gradient_stays_zero_without_noise():
    released, _ = privatise([np.zeros(5)], release=release_of((1.0,)))
    assert (released[0] == 0).all()


@pytest.mark.parametrize("variant", ["published", "calibrated"])
def test_noise_has_the_released_stddev_in_each_layer(variant):
    shapes, scales = [(200_000,), (200_000,), (200_000,)], (1.0, 0.5, 0.5)
    release = release_of(scales, num_workers=4, c=0.5, variant=variant)
    released, _ = privatise([np.zeros(shape) for shape in shapes], release=release, z=2.0)
    for tensor, scale in zip(released, scales):
        expected = 0.25 if variant == "published" else scale * 2 * 0.5 * 2.0 / 2
        ratio = tensor.astype(np.float64).std() / expected
        assert abs(ratio - 1) < 0.02  # 12 standard errors; rejects 2/3 and 3/2 by far


def test_one_example_can_turn_a_clipped_mean_round():
    """Why κ = 2: PRIVACY, "Sensitivity of the release"."""
    witness = CASES["c92"]
    inputs, expected = witness["inputs"], witness["expected"]
    release = release_of(inputs["alpha"], c=inputs["C"], micro_batch_size=2)
    values = []
    for zeroed in (None, inputs["zeroed_index"]):
        examples = [0.0 if i == zeroed else x for i, x in enumerate(inputs["examples"])]
        released, _ = privatise([np.array([np.mean(examples)])], release=release)
        values.append(float(released[0][0]))
    assert values == pytest.approx([expected["clipped"], expected["clipped_after_zero_out"]])
    assert abs(values[0] - values[1]) == pytest.approx(expected["change"])
    assert expected["change"] <= release.aggregate_sensitivity * (1 + 1e-9)
