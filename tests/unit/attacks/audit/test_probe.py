"""The probe's release is Algorithm 1 applied to the gradients that were asked for."""

import numpy as np
import pytest
from support import algorithm1
from support.audited import audited_step
from support.refusals import one_sentence

from edp_mx.attacks.audit.probe import Probe
from edp_mx.attacks.audit.step import _worlds
from edp_mx.dp.accounting.clippings import CLIP_RULES
from edp_mx.runtime.distributed import start

TINY = 1e-9  # no noise to speak of


@pytest.fixture(autouse=True, scope="module")
def horovod():
    """A trainer needs it."""
    start()


def test_the_release_is_that_of_the_examples_mean(generator):
    step = audited_step(1, noise_multiplier=TINY, max_grad_norm=0.5, micro_batch_size=4)
    probe = Probe(step, size=6)
    for length in (0.01, 3.0):  # not clipped, clipped
        examples = [length * generator.normal(size=(4, 6)) for _ in range(2)]
        sent = algorithm1.worker_step(
            [[part.mean(0)] for part in examples], scales=(1.0, 0.25), max_grad_norm=0.5
        )
        for found, (wanted,) in zip(probe.released(examples, [4]), sent):
            np.testing.assert_allclose(found, wanted, atol=1e-6)


@pytest.mark.parametrize("rule", CLIP_RULES)
@pytest.mark.parametrize("clipping", ["loop", "ghost"])
@pytest.mark.parametrize(
    ("settings", "kappa"),
    [
        ({"micro_batch_size": 1}, 2),
        ({"micro_batch_size": 3}, 2),
        ({"micro_batch_size": 1, "adjacency": "zero_out"}, 1),
        ({"micro_batch_size": 16, "adjacency": "zero_out"}, 2),
        ({"micro_batch_size": 2, "micro_batches_per_worker": 4}, 2),
        ({"unit": "utterance"}, 2),
        ({"unit": "utterance", "adjacency": "zero_out"}, 1),
        ({"unit": "user", "max_utterances_per_user": 5}, 2),
        ({"unit": "user", "max_utterances_per_user": 5, "adjacency": "zero_out"}, 1),
    ],
)
def test_the_worlds_are_neighbours_that_lie_as_far_apart_as_the_release_allows(
    settings, kappa, clipping, rule
):
    scales = (0.5, 1.0)
    step = audited_step(1, noise_multiplier=TINY, layer_scales=scales, max_grad_norm=0.7,
                        clipping=clipping, clip_rule=rule, **settings)  # fmt: skip
    probe, sampler = Probe(step, size=4), step.build_sampler(0)
    worlds = _worlds(probe.release, step, sampler)
    one = settings.get("max_utterances_per_user", 1)
    assert (worlds[0] != worlds[1]).sum() == one  # only one record, or one user's, differs
    if settings.get("adjacency") == "zero_out" or probe.release.kappa != kappa:
        assert (worlds[0][worlds[0] != worlds[1]] == 0).all()
    direction, units = np.full(4, 0.5), probe.release.units_per_worker
    for layer, scale in enumerate(scales):
        seen = []
        for world in worlds:
            draw = next(sampler.draws(0))
            examples = [np.zeros((len(draw.records), 4)) for _ in scales]
            examples[layer] = np.outer(world[draw.records], direction)
            seen.append(probe.released(examples, draw.sizes.tolist())[layer] @ direction)
        # κ C α / (workers · units), docs/privacy.md, sections 2 and 8
        assert seen[1] - seen[0] == pytest.approx(kappa * 0.7 * scale / units, rel=1e-5)
        assert seen[1] > 0


def test_by_the_automatic_rule_short_gradients_are_lengthened(generator):
    """C g / (‖g‖ + γ), γ = 0.01, where Abadi's rule leaves a short gradient alone."""
    step = audited_step(1, noise_multiplier=TINY, layer_scales=(1.0,), max_grad_norm=0.5,
                        micro_batch_size=1, clip_rule="automatic")  # fmt: skip
    gradient = 0.03 * np.eye(1, 6)
    (found,) = Probe(step, size=6).released([gradient], [1])
    np.testing.assert_allclose(found, 0.5 * gradient[0] / (0.03 + 0.01), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("settings", [
    {"noise_multiplier": 0.0},
    {"noise_multiplier": None, "target_epsilon": 8.0},
])  # fmt: skip
def test_without_noise_there_is_nothing_to_audit(settings):
    one_sentence(r"privacy\.noise_multiplier: an audit needs", audited_step, 2, **settings)
