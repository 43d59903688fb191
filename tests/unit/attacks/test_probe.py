"""The probe's release is Algorithm 1 applied to the gradients that were asked for."""

import numpy as np
import pytest
from support import algorithm1

from edp_mx.attacks.probe import AuditedStep, Probe
from edp_mx.attacks.step_audit import _plan, _worlds
from edp_mx.distributed import start
from edp_mx.errors import UserError

TINY = 1e-9  # no noise to speak of


def test_the_release_is_that_of_the_examples_mean(generator):
    step = AuditedStep(
        noise_multiplier=TINY, layer_scales=(1.0, 0.25), max_grad_norm=0.5, micro_batch_size=4
    )
    probe = Probe(start(), step, size=6)
    for length in (0.01, 3.0):  # not clipped, clipped
        examples = [length * generator.normal(size=(4, 6)) for _ in range(2)]
        sent = algorithm1.worker_step(
            [[part.mean(0)] for part in examples],
            scales=(1.0, 0.25),
            max_grad_norm=0.5,
            noise_stddevs=[0, 0],
            noise=[[np.zeros(6)], [np.zeros(6)]],
        )
        for found, (wanted,) in zip(probe.released(examples), sent):
            np.testing.assert_allclose(found, wanted, atol=1e-6)


@pytest.mark.parametrize(
    ("adjacency", "size", "kappa"),
    [("replace_one", 1, 2), ("replace_one", 3, 2), ("zero_out", 1, 1), ("zero_out", 16, 2)],
)
@pytest.mark.parametrize("layer", [0, 1])
def test_the_worlds_are_neighbours_that_lie_as_far_apart_as_the_release_allows(
    adjacency, size, kappa, layer
):
    step = AuditedStep(
        noise_multiplier=TINY,
        layer_scales=(0.5, 1.0),
        max_grad_norm=0.7,
        adjacency=adjacency,
        micro_batch_size=size,
    )
    probe = Probe(start(), step, size=4)
    worlds = _worlds(probe.release, size)
    assert (worlds[0][1:] == worlds[1][1:]).all()  # only the first example differs
    if adjacency == "zero_out":
        assert worlds[0][0] == 0
    direction = np.full(4, 0.5)
    seen = []
    for world in worlds:
        examples = [np.zeros((size, 4)) for _ in range(2)]
        examples[layer] = np.outer(world, direction)
        seen.append(probe.released(examples)[layer] @ direction)
    # κ C α / N, from PRIVACY
    assert seen[1] - seen[0] == pytest.approx(kappa * 0.7 * (0.5, 1.0)[layer], rel=1e-5)
    assert seen[1] > 0


@pytest.mark.parametrize("is_alone", [True, False])
@pytest.mark.parametrize("num_workers", [1, 2, 3, 8])
def test_every_worker_is_in_either_world_equally_often(is_alone, num_workers):
    plan = _plan(25, num_workers, is_alone=is_alone)
    seen = [(worker, world) for worlds in plan for worker, world in worlds.items()]
    counts = {seen.count((i, world)) for i in range(num_workers) for world in (0, 1)}
    assert len(counts) == 1 and 25 <= counts.pop() * num_workers < 25 + num_workers
    if is_alone:
        assert all(len(worlds) == 1 for worlds in plan)


@pytest.mark.parametrize("multiplier", [0.0, -1.0, float("nan"), float("inf")])
def test_without_noise_there_is_nothing_to_audit(multiplier):
    with pytest.raises(UserError, match="--noise-multiplier"):
        AuditedStep(noise_multiplier=multiplier).release(2)
