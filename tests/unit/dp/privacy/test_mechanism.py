"""One worker's part of Algorithm 1 against the slow form and the golden vectors."""

from dataclasses import replace

import numpy as np
import pytest
from support import algorithm1
from support.examples import plan_with
from support.golden_vectors import cases
from support.prescribed import flat_of, losses_with
from support.releases import release_with

from edp_mx.dp.accounting.decay import Decay
from edp_mx.dp.privacy.clipping import Unclipped
from edp_mx.dp.privacy.mechanism import Mechanism, WithoutPrivacy
from edp_mx.dp.privacy.noise import NoiseStream
from edp_mx.dp.privacy.norm_clipping import LoopClipping
from edp_mx.errors import UserError


class GivenNoise:
    """Stands for a noise stream: hands out given numbers instead of drawn ones."""

    def __init__(self, values):
        self.values, self.position = values, 0

    mask_key, gaussian = bytes(32), "plain"

    def scale_and_add_parts(self, array, *, parts, factor, source):
        for part, stddev in parts:
            target = array[part]
            drawn = self.values[self.position : self.position + target.size]
            self.position += target.size
            target[:] = factor * source[part].astype(np.float64) + stddev * drawn


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


def privatise(*gradients, release, z=0.0, noise=None, decay=None, epoch=0):
    """What the mechanism makes of one worker's gradients, one per unit, and its statistics."""
    shapes = [np.shape(tensor) for tensor in gradients[0]]
    flat = flat_of(shapes)
    stream = (
        NoiseStream.from_operating_system()
        if noise is None
        else GivenNoise(put(flat, noise, np.zeros(flat.size, np.float32)))
    )
    clipping = LoopClipping(flat=flat, release=release)
    plan = plan_with(release, z=z, decay=decay)
    mechanism = Mechanism(plan=plan, clipping=clipping, noise=stream)
    units = [put(flat, unit, np.zeros(flat.size, np.float32)) for unit in gradients]
    mechanism.privatise([losses_with(flat, unit) for unit in units], epoch=epoch)
    return get(flat, shapes, flat.gradients()), mechanism.clipping.take_statistics()


def release_of(scales, *, num_workers=1, micro_batch_size=4, c=1.0, variant="published", k=1):
    return release_with(
        num_workers=num_workers, micro_batches_per_worker=k, micro_batch_size=micro_batch_size,
        max_grad_norm=c, layer_scales=scales, variant=variant,
    )  # fmt: skip


@pytest.mark.parametrize("case", cases("algorithm1"), ids=lambda case: case["id"])
def test_golden_vectors_of_algorithm_1(case):
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
        released, statistics = privatise(gradient, release=release, z=inputs["z"], noise=noise)
        assert statistics.norm_sum == pytest.approx(expected["scaled_norms"][i], 1e-6)
        sent.append(released)
    if inputs["variant"] == "calibrated":
        assert inputs["kappa"] == release.kappa
    for k, tensor in enumerate(expected["aggregate"]):
        np.testing.assert_allclose(
            np.mean([worker[k] for worker in sent], axis=0), tensor, rtol=1e-6
        )


@pytest.mark.parametrize("variant", ["published", "calibrated"])
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("k, num_workers", [(1, 1), (1, 5), (2, 1), (5, 2)])
def test_equals_the_slow_form(variant, size, k, num_workers, generator):
    """One of several workers; its k micro-batches are k workers of Algorithm 1."""
    shapes, scales = [(3, 5), (17,), (2, 2, 2)], (1.0, 0.01, 0.3)
    units = [[generator.normal(size=shape) * size * 3.0**j for shape in shapes] for j in range(k)]
    noise = [generator.normal(size=shape) for shape in shapes]
    release = release_of(scales, num_workers=num_workers, k=k, c=0.7, variant=variant)
    released, statistics = privatise(
        *units, release=release, z=1.3, noise=noise, decay=Decay("exponential", 0.1), epoch=3
    )
    arguments = {
        "max_grad_norm": 0.7,
        "noise_multiplier": 1.3 * np.exp(-0.3),
        "num_workers": k * num_workers,
        "scales": scales,
    }
    stddevs = (
        algorithm1.published_stddevs(**arguments)
        if variant == "published"
        else algorithm1.calibrated_stddevs(**arguments, kappa=2.0)
    )
    sent = [
        algorithm1.worker_step(
            [[t] for t in unit],
            scales=scales,
            max_grad_norm=0.7,
            noise_stddevs=stddevs,
            noise=[[y / np.sqrt(k)] for y in noise],  # k draws, whose mean has 1/√k of their size
        )
        for unit in units
    ]
    for tensor, (slow,) in zip(released, algorithm1.aggregate(sent)):
        np.testing.assert_allclose(tensor, slow, rtol=1e-5, atol=1e-6)
    assert statistics.units == k


@pytest.mark.parametrize("poison", [np.nan, np.inf, -np.inf, 3e38])
def test_a_gradient_that_is_not_finite_counts_as_zero_and_still_gets_noise(poison):
    gradient = np.full((20_000,), poison if poison == 3e38 else 1.0)
    gradient[7] = poison
    released, statistics = privatise([gradient], release=release_of((1.0,)), z=1.0)
    assert statistics.non_finite == 1
    assert np.isfinite(released[0]).all()
    assert released[0].std() == pytest.approx(1.0, rel=0.05)  # 10 standard errors
    assert abs(released[0].mean()) < 6 / 20_000**0.5


@pytest.mark.parametrize("variant", ["published", "calibrated"])
@pytest.mark.parametrize("k", [1, 3])
def test_noise_has_the_released_stddev_in_each_layer(variant, k):
    """C z / (N √k) on the message, and α κ C z √workers / N, N = 4 k."""
    shapes, scales = [(200_000,), (200_000,), (200_000,)], (1.0, 0.5, 0.5)
    release = release_of(scales, num_workers=4, c=0.5, variant=variant, k=k)
    units = [[np.zeros(shape) for shape in shapes]] * k
    released, _ = privatise(*units, release=release, z=2.0)
    for tensor, scale in zip(released, scales):
        expected = 0.25 / k**1.5 if variant == "published" else scale * 2 * 0.5 * 2.0 / 2 / k
        ratio = tensor.astype(np.float64).std() / expected
        assert abs(ratio - 1) < 0.02  # 12 standard errors; rejects 2/3 and 3/2 by far


def test_one_example_can_turn_a_clipped_mean_round():
    """Why κ = 2: docs/privacy.md, section 2."""
    (witness,) = cases("sensitivity_witness")
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


def parts_of(release):
    flat = flat_of([(4,)])
    clipping = LoopClipping(flat=flat, release=release_of((1.0,)))
    return {"plan": plan_with(release), "clipping": clipping,
            "noise": NoiseStream.from_operating_system()}  # fmt: skip


@pytest.mark.parametrize(
    ("release", "message"),
    [
        (None, "has no mechanism"),
        (release_of(None), "another release"),
        (release_of((1.0,), c=2.0), "another release"),
        (release_of((0.5,)), "another release"),
        (replace(release_of((1.0,)), clip_rule="automatic"), "another release"),
    ],
)
def test_a_mechanism_takes_only_the_clipping_of_its_plan(release, message):
    with pytest.raises(UserError, match=message):
        Mechanism(**parts_of(release))


def test_a_clipping_without_layer_scales_is_refused():
    with pytest.raises(UserError, match="not known yet"):
        LoopClipping(flat=flat_of([(4,)]), release=release_of(None))


def test_without_privacy_it_is_the_mean_of_the_units_gradients(generator):
    flat = flat_of([(5,), (40,)])
    units = [generator.normal(size=flat.size).astype(np.float32) * 1e6 for _ in range(3)]
    for given, divisor in ((units[:1], 1), (units, 3), (units, 2.5), ([], 1)):
        mechanism = WithoutPrivacy(clipping=Unclipped(flat=flat), units_per_worker=divisor)
        released = mechanism.privatise([losses_with(flat, unit) for unit in given], epoch=0)
        released.use(flat)
        found = np.concatenate([part.ravel() for part in flat.views(flat.gradients()).values()])
        expected = np.zeros(flat.size) + sum(unit.astype(np.float64) for unit in given) / divisor
        expected = np.concatenate([part.ravel() for part in flat.views(expected).values()])
        np.testing.assert_allclose(found, expected, rtol=1e-6)
        assert mechanism.clipping.take_statistics().units == 0
