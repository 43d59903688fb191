"""A0 and A1 through real workers: what is sound passes, the paper's claim and planted bugs do not.

The bugs are planted in the workers' own processes, by patching the product there.
"""

from typing import Any, Dict, NamedTuple

import pytest
from support.audited import audited_step
from support.workers import run_workers

# Keys are the operating system's. With so many draws and these confidences each assertion fails by
# chance less than once in 1e7 (from the binomial and chi-squared distributions themselves).
SURE = 1 - 1e-9  # that a sound system passes all checks of a noise audit
CONFIDENCE = 0.9999  # two rates have to err at once: a sound system fails at 1e-8
SCALES = (1.0, 0.25)


class Case(NamedTuple):
    """A step to audit, what is wrong with it, and how A1 is run (not at all without draws)."""

    settings: Dict[str, Any]
    bug: str = ""
    draws: int = 200
    has_noise_audit: bool = True
    attacks_all: bool = True  # layers by A1, or that of the largest α alone
    how: Dict[str, Any] = {}


def of_layers(
    bug="", draws=200, variant="calibrated", attacks_all=True, noise_multiplier=1.0, **how
):
    settings = {"variant": variant, "layer_scales": SCALES, "noise_multiplier": noise_multiplier}
    return Case(settings, bug, draws, attacks_all=attacks_all, how=how)


def of_unit(**settings):
    draws = 240 if settings.get("sampler") != "poisson" else 120  # without means to look at
    return Case({"layer_scales": (1.0,), **settings}, draws=draws)


UNITS = {
    "k micro-batches": of_unit(micro_batches_per_worker=4, micro_batch_size=4),
    "k micro-batches by ghost": of_unit(micro_batches_per_worker=4, clipping="ghost"),
    "utterances by ghost": of_unit(unit="utterance", clipping="ghost", adjacency="zero_out"),
    "users": of_unit(
        unit="user", adjacency="zero_out", max_utterances_per_user=6, micro_batch_size=3
    ),
    "users by ghost": of_unit(unit="user", clipping="ghost", max_utterances_per_user=6),
    "drawn micro-batches": of_unit(sampler="poisson"),
    "drawn utterances by ghost": of_unit(
        unit="utterance", clipping="ghost", sampler="poisson", adjacency="zero_out"
    ),
    "drawn users": of_unit(unit="user", sampler="poisson", adjacency="zero_out"),
}
SOUND = {
    "published": of_layers(variant="published", draws=380, attacks_all=False),
    "calibrated": of_layers(),
    **UNITS,
}
WRONG_NOISE = {  # which the noise audit finds by itself
    bug: of_layers(bug, draws=0)
    for bug in ("shared_key", "shared_stream", "silent_worker", "noise_unscaled")
}
WRONG_STEP = {
    # little noise has few errors, which takes half the draws: a miss has 2e-9
    "clip_after_averaging": of_layers(
        "clip_after_averaging", draws=240, attacks_all=False, noise_multiplier=0.5, is_alone=True
    ),
    "rescale_forgotten": of_layers("rescale_forgotten"),
}


def wrong(sound, bug, draws=120, **settings):
    return Case({**sound.settings, **settings}, bug, draws, has_noise_audit=False)


WRONG_UNITS = {
    "utterances clipped, users claimed": wrong(UNITS["users"], "each_utterance"),
    "utterances clipped by ghost, users claimed": wrong(UNITS["users by ghost"], "each_utterance"),
    "noise of one micro-batch for k": wrong(UNITS["k micro-batches"], "less_noise"),
    # refuted by its errors alone, which takes more draws: what is drawn is no Gaussian
    "little noise for drawn users": wrong(
        UNITS["drawn users"], "less_noise", draws=1200, noise_multiplier=2.0
    ),
}
PAPER = Case(
    {"variant": "published", **UNITS["k micro-batches"].settings},
    draws=120,
    has_noise_audit=False,
    how={"claim": "published"},
)
CASES = {**SOUND, **WRONG_NOISE, **WRONG_STEP, **WRONG_UNITS, "paper, k micro-batches": PAPER}
LEFT_TO_THE_SLOW_SUITE = (
    "k micro-batches by ghost",
    "utterances by ghost",
    "users",
    "users by ghost",
    "drawn micro-batches",
    "drawn users",
    "utterances clipped, users claimed",
    "utterances clipped by ghost, users claimed",
    "little noise for drawn users",
)
QUICK = tuple(name for name in CASES if name not in LEFT_TO_THE_SLOW_SUITE)


def audit_all(names, size):
    """Runs on a worker: the audits of each case, in one process."""
    from contextlib import nullcontext
    from unittest import mock

    import horovod.mxnet as hvd
    import mxnet as mx
    import numpy as np

    from edp_mx.attacks.audit.noise import audit_noise
    from edp_mx.attacks.audit.probe import Probe
    from edp_mx.attacks.audit.step import audit_step
    from edp_mx.dp.privacy.clipping import ClippedSum
    from edp_mx.dp.privacy.mechanism import Mechanism
    from edp_mx.dp.privacy.noise import NoiseStream
    from edp_mx.dp.privacy.norm_clipping import LoopClipping
    from edp_mx.runtime import distributed

    workers = distributed.start()
    segments, gradient_of = Mechanism._noise_segments, LoopClipping._gradient_of
    take, make_stream, chunks = ClippedSum.take, NoiseStream.__init__, Probe.chunks

    def shared_key(**how):
        return NoiseStream(key=bytes(32), **how)

    def shared_stream(self, *, key, **how):
        """Keys and fingerprints differ, but the numbers do not come from the key."""
        make_stream(self, key=key, **how)
        fingerprint = self.fingerprint
        make_stream(self, key=bytes(32), **how)
        self.fingerprint = fingerprint

    def silent_worker(self, multiplier):
        for part, stddev in segments(self, multiplier):
            yield part, 0.0 if workers.rank == workers.size - 1 else stddev

    def clip_after_averaging(self, losses):
        gradient, _, made = gradient_of(self, losses)
        averaged = hvd.allreduce(mx.nd.array(gradient), average=True, name="planted")
        gradient[:] = averaged.asnumpy()  # the same on all workers; the mean keeps it
        return gradient, self.flat.squared_norms(gradient)[None], made

    def rescale_forgotten(self):
        values, factor = take(self)
        for part, scale in zip(self._flat.segments, step.layer_scales):
            values[part] /= np.float32(scale)
        return values, factor

    def noise_unscaled(self, multiplier):
        largest = max(self._release.worker_noise_stddev(multiplier))
        for part, _ in segments(self, multiplier):
            yield part, largest

    def each_utterance(self, examples, sizes):
        return chunks(self, examples, [1] * sum(sizes))

    def less_noise(self, multiplier):
        for part, stddev in segments(self, multiplier):
            yield part, stddev / 8

    patches = {
        "shared_key": (NoiseStream, "from_operating_system", shared_key),
        "shared_stream": (NoiseStream, "__init__", shared_stream),
        "silent_worker": (Mechanism, "_noise_segments", silent_worker),
        "clip_after_averaging": (LoopClipping, "_gradient_of", clip_after_averaging),
        "rescale_forgotten": (ClippedSum, "take", rescale_forgotten),
        "noise_unscaled": (Mechanism, "_noise_segments", noise_unscaled),
        "each_utterance": (Probe, "chunks", each_utterance),
        "less_noise": (Mechanism, "_noise_segments", less_noise),
    }
    found = {name: {} for name in names}
    for name in names:
        case = CASES[name]
        step = audited_step(workers.size, **case.settings)
        with mock.patch.object(*patches[case.bug]) if case.bug else nullcontext():
            if case.has_noise_audit:
                noise = audit_noise(workers, step, size=size, confidence=SURE)
                found[name]["noise"] = noise.to_dict(), noise.describe()
            if case.draws:
                if not case.attacks_all:
                    step = audited_step(workers.size, **{**case.settings, "layer_scales": (1.0,)})
                one = audit_step(workers, step, draws=case.draws, confidence=CONFIDENCE, **case.how)
                found[name]["step"] = one.to_dict(), one.describe()
    return found


@pytest.fixture(
    scope="module", params=["quick", *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 8))]
)
def audits(request):
    """By worker: all audits, in one launch."""
    if request.param == "quick":
        return run_workers(audit_all, 2, QUICK, 20_000)
    return run_workers(audit_all, request.param, tuple(CASES), 100_000)


@pytest.fixture
def audit(audits, name):
    """What the first worker says of a case."""
    if name not in audits[0]:
        pytest.skip("audited by the slow suite")
    return audits[0][name]


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_system_is_not_refuted(audits, audit, name):
    (noise, noise_text), (step, step_text) = audit["noise"], audit["step"]
    assert not noise["refuted"], noise_text
    assert not step["claims"]["holds"]["refuted"], step_text
    assert all(found[name] == audit for found in audits)  # on every worker


def test_the_published_accounting_is_refuted_and_the_calibrated_one_is_not(audits):
    published, calibrated = (
        audits[0][variant]["step"][0] for variant in ("published", "calibrated")
    )
    # one step at z = 1, δ = 1e-5 by the paper: 1/2 + 2 √(ln(1e5) / 2)
    claim = published["claims"]["published"]
    assert claim["epsilon"] == pytest.approx(5.2985, abs=1e-3)
    assert claim["refuted"] and published["epsilon_at_least"] > 1.4 * claim["epsilon"]
    assert not calibrated["claims"]["published"]["refuted"]


@pytest.mark.parametrize("name", ["paper, k micro-batches"])
def test_the_paper_s_claim_for_micro_batches_of_one_worker_is_refuted(audit):
    step, said = audit["step"]
    assert step["refuted"] and not step["claims"]["holds"]["refuted"], said


def test_the_attack_sees_what_the_release_says(audits):
    # κ C α / N apart and C α / N to either side, whatever the noise
    num_workers, draws = len(audits), SOUND["calibrated"].draws
    for layer, scale in zip(audits[0]["calibrated"]["step"][0]["layers"], SCALES):
        low, high = layer["means"]
        error = 6 * scale / num_workers * 2 / draws**0.5  # six standard errors of noise 2 α / N
        assert high == pytest.approx(scale / num_workers, abs=error)
        assert low == pytest.approx(-scale / num_workers, abs=error)


@pytest.mark.parametrize("name", [name for name in UNITS if not name.startswith("drawn")])
def test_the_two_worlds_lie_as_far_apart_as_is_claimed(audits, audit, name):
    """The attack sees the whole sensitivity, which is one standard deviation of the noise."""
    (layer,) = audit["step"][0]["layers"]
    without, with_it = layer["means"]
    release = audited_step(len(audits), **UNITS[name].settings).release
    error = 6 * (2 / UNITS[name].draws) ** 0.5
    assert (with_it - without) / release.aggregate_sensitivity == pytest.approx(1, abs=error)


def failed(audit):
    return [check["name"] for check in audit["checks"] if not check["passed"]]


LAST = "workers 0 and {last}, correlation"


@pytest.mark.parametrize(
    "name, checks",
    [
        # a shared stream makes the noise √N too large
        ("shared_key", {LAST, "different noise keys", "noise on layer 0, stddev"}),
        ("shared_stream", {LAST, "noise on layer 0, stddev"}),
        ("silent_worker", {LAST, "noise on layer 1, stddev"}),
        ("noise_unscaled", {"noise on layer 1, stddev"}),
    ],
)
def test_wrong_noise_is_found_by_the_noise_audit(audits, audit, name, checks):
    noise, _ = audit["noise"]
    names = failed(noise)
    assert noise["refuted"]
    assert {check.format(last=len(audits) - 1) for check in checks} <= set(names)
    assert ("different noise keys" in names) is (name == "shared_key")
    if name == "noise_unscaled":  # what is divided by a wrong claim has another standard error
        assert [name for name in names if name.endswith("stddev")] == list(checks)


@pytest.mark.parametrize("name", [*WRONG_STEP, *WRONG_UNITS])
def test_a_wrong_step_is_found_by_the_step_audit(audit, name):
    step, text = audit["step"]
    assert step["refuted"] and step["audited"] == "holds", text
    if name == "clip_after_averaging":
        noise, text = audit["noise"]
        assert not noise["refuted"], text  # zero gradients do not show it
    if name == "rescale_forgotten":
        small = step["layers"][1]
        assert small["scale"] == 0.25 and small["mu"] > 1.5  # its α was ignored; 1 is right
