"""A0: the noise that N real workers release, with zero gradients."""

import numpy as np
import pytest
from support.prescribed import flat_of, losses_with
from support.private_steps import PrivateSteps
from support.workers import run_workers

from edp_mx.dp.privacy.noise import NoiseStream, refuse_equal

SIZE, STEPS = 150_000, 2  # coordinates per layer
SCALES, CLIP, Z = (1.0, 0.5), 0.5, 0.8
ERRORS = 6.5  # standard errors: keys are the operating system's; one of 1e10 lies beyond


def release_noise(variant, num_steps, size, per_worker=1, gaussian="plain"):
    """Runs on a worker: steps with zero gradients; the aggregates, and what it sent itself."""
    flat = flat_of([(size,)] * len(SCALES))
    noise = NoiseStream.from_operating_system(gaussian=gaussian)
    steps = PrivateSteps(
        flat, z=Z, noise=noise, unit="micro_batch", micro_batches_per_worker=per_worker,
        max_grad_norm=CLIP, layer_scales=SCALES, adjacency="replace_one", variant=variant,
    )  # fmt: skip
    refuse_equal(steps.workers.gather(noise.fingerprint))
    released, before = [], steps.weights()
    for _ in range(num_steps):
        after = steps.take([losses_with(flat, np.zeros(flat.size))] * per_worker)
        released.append([x - y for (x,), (y,) in zip(before, after)])
        before = after
    return released, steps.mechanism.sent


@pytest.mark.parametrize("variant", ["published", "calibrated"])
@pytest.mark.parametrize(
    ("num_workers", "k", "gaussian"),
    [
        (1, 1, "plain"),
        (2, 1, "plain"),
        (2, 4, "hardened"),
        *(pytest.param(n, 1, "plain", marks=pytest.mark.slow) for n in (3, 8)),
        *(pytest.param(n, 1, "hardened", marks=pytest.mark.slow) for n in (1, 8)),
    ],
)
def test_the_released_noise_is_what_the_accountant_is_told(num_workers, k, gaussian, variant):
    results = run_workers(release_noise, num_workers, variant, STEPS, SIZE, k, gaussian)
    released = results[0][0]
    for other, _ in results[1:]:
        for step, same in zip(released, other):
            for layer, again in zip(step, same):
                assert (layer == again).all(), "the workers' weights have drifted apart"

    for step in released:
        for scale, layer in zip(SCALES, step):
            if variant == "published":
                expected = CLIP * Z / (num_workers * k) ** 1.5
            else:
                expected = 2 * CLIP * Z * scale / (num_workers * k)
            ratio = layer.astype(np.float64).std() / expected
            # ERRORS standard errors accept the right scale and reject 2/3, 3/2 and √N of it
            assert abs(ratio - 1) < ERRORS / (2 * SIZE) ** 0.5
            assert abs(layer.mean()) < ERRORS * expected / SIZE**0.5
    assert_uncorrelated(released[0][0], released[1][0])  # from step to step
    assert_uncorrelated(released[0][0], released[0][1])  # from layer to layer
    for rank, (_, sent) in enumerate(results):  # from worker to worker
        for _, others in results[:rank]:
            assert_uncorrelated(sent[0], others[0])


def test_workers_that_were_started_anew_draw_different_noise():
    first = run_workers(release_noise, 2, "published", 1, 1000)
    second = run_workers(release_noise, 2, "published", 1, 1000, is_fresh=True)
    for (one, _), (other, _) in zip(first, second):
        assert_uncorrelated(one[0][0], other[0][0])
        assert (one[0][0] == other[0][0]).mean() < 0.01  # by chance one in 1e8


def assert_uncorrelated(one, other):
    """|r| below so many standard errors."""
    correlation = np.corrcoef(one.astype(np.float64), other.astype(np.float64))[0, 1]
    assert abs(correlation) < ERRORS / len(one) ** 0.5
