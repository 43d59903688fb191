"""A0 and A1 of every unit, clipping and sampler through real workers; planted bugs are refuted."""

from __future__ import annotations

import pytest
from support.workers import run_workers

from edp_mx.attacks.audit.audited_step import AuditedStep

SURE = 1 - 1e-9  # that a sound system passes all checks of a noise audit
DRAWS = 240
SOUND = {
    "k micro-batches": {"micro_batches_per_worker": 4, "micro_batch_size": 4},
    "k micro-batches by ghost": {"micro_batches_per_worker": 4, "clipping": "ghost"},
    "utterances by ghost": {"unit": "utterance", "clipping": "ghost", "adjacency": "zero_out"},
    "users": {"unit": "user", "adjacency": "zero_out", "utterances_per_user": 6,
              "micro_batch_size": 3},
    "users by ghost": {"unit": "user", "clipping": "ghost", "utterances_per_user": 6},
    "drawn micro-batches": {"sampler": "poisson"},
    "drawn utterances by ghost": {"unit": "utterance", "clipping": "ghost", "sampler": "poisson",
                                  "adjacency": "zero_out"},
    "drawn users": {"unit": "user", "sampler": "poisson", "adjacency": "zero_out"},
}  # fmt: skip
# What the default suite audits, with two workers; the slow one takes all.
QUICK = (
    "k micro-batches",
    "users by ghost",
    "drawn utterances by ghost",
    "utterances clipped by ghost, users claimed",
    "noise of one micro-batch for k",
)
BUGS = {
    "utterances clipped, users claimed": SOUND["users"],
    "utterances clipped by ghost, users claimed": SOUND["users by ghost"],
    "noise of one micro-batch for k": SOUND["k micro-batches"],
    "little noise for drawn users": {**SOUND["drawn users"], "noise_multiplier": 2.0},
}


def audit_all(draws, names):
    """Runs on a worker: both audits of each sound step, A1 of the bugs and of the paper's."""
    from unittest import mock

    from edp_mx.attacks.audit.audited_step import AuditedStep
    from edp_mx.attacks.audit.noise import audit_noise
    from edp_mx.attacks.audit.probe import Probe
    from edp_mx.attacks.audit.step import audit_step
    from edp_mx.privacy.mechanism import Mechanism
    from edp_mx.runtime import distributed

    workers = distributed.start()
    chunks, segments = Probe.chunks, Mechanism._noise_segments

    def each_utterance(self, examples, sizes):
        return chunks(self, examples, [1] * sum(sizes))

    def less_noise(self, multiplier):
        for part, stddev in segments(self, multiplier):
            yield part, stddev / 8

    patches = dict.fromkeys(list(BUGS)[:2], (Probe, "chunks", each_utterance))
    patches.update(dict.fromkeys(list(BUGS)[2:], (Mechanism, "_noise_segments", less_noise)))
    found = {}
    for name in filter(names.__contains__, SOUND):
        settings = SOUND[name]
        step = AuditedStep(layer_scales=(1.0,), **settings)
        noise = audit_noise(workers, step, size=5000, confidence=SURE)
        one = audit_step(workers, step, draws=draws, confidence=0.9999)
        sound = noise.is_refuted, noise.describe(), one.to_dict(), one.describe()
        found[name] = (*sound, workers.size)
    for name in filter(names.__contains__, BUGS):
        settings = BUGS[name]
        with mock.patch.object(*patches[name]):
            step = AuditedStep(layer_scales=(1.0,), **settings)
            more = 5 if step.sampler == "poisson" else 1  # by the errors alone, no Gaussian
            one = audit_step(workers, step, draws=more * draws, confidence=0.9999)
        found[name] = (one.to_dict(), one.describe())
    paper = AuditedStep(variant="published", layer_scales=(1.0,), **SOUND["k micro-batches"])
    one = audit_step(workers, paper, draws=draws, confidence=0.9999, claim="published")
    found["published"] = (one.to_dict(), one.describe())
    return found


@pytest.fixture(scope="module")
def launched():
    """All audits of so many workers, in one launch each."""
    done = {}

    def launch(num_workers, names):
        if (num_workers, names) not in done:
            done[num_workers, names] = run_workers(audit_all, num_workers, DRAWS, names)[0]
        return done[num_workers, names]

    return launch


@pytest.fixture(params=["quick", *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 8))])
def audits(request, launched, name):
    if request.param != "quick":
        return launched(request.param, (*SOUND, *BUGS))
    if name not in (*QUICK, "published"):
        pytest.skip("audited by the slow suite")
    return launched(2, QUICK)


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_step_is_upheld(audits, name):
    noise_is_refuted, noise, step, said, _ = audits[name]
    assert not noise_is_refuted, noise
    assert not step["refuted"], said


@pytest.mark.parametrize("name", [name for name in SOUND if not name.startswith("drawn")])
def test_the_two_worlds_lie_as_far_apart_as_is_claimed(audits, name):
    """The attack sees the whole sensitivity, which is one standard deviation of the noise."""
    (layer,) = audits[name][2]["layers"]
    without, with_it = layer["means"]
    step = AuditedStep(layer_scales=(1.0,), **SOUND[name])
    error = 6 * (2 / DRAWS) ** 0.5
    moved = (with_it - without) / step.release(audits[name][4]).aggregate_sensitivity
    assert moved == pytest.approx(1, abs=error)


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_refuted(audits, name):
    step, said = audits[name]
    assert step["refuted"] and step["audited"] == "holds", said


@pytest.mark.parametrize("name", ["published"])
def test_the_paper_s_claim_for_micro_batches_of_one_worker_is_refuted(audits, name):
    step, said = audits[name]
    assert step["refuted"] and not step["claims"]["holds"]["refuted"], said
