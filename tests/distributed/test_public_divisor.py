"""DP-SGD through real workers, attacked by absent examples: the divisor must be public."""

import pytest
from support.workers import run_workers

SCALES = (1.0, 0.25)
# Keys are the operating system's: each assertion fails by chance less than once in 1e7.
SIGNIFICANCE = 1e-4  # two rates have to err at once: a sound system fails at 2e-8
SURE = 1 - 1e-9  # that a sound system passes all checks of a noise audit


def audit_worker(size):
    """Runs on a worker: A0 and A1 of the sound system and of each bug, in one process."""
    from unittest import mock

    from support.audited import audited_step
    from support.example_probe import attack

    from edp_mx.attacks.audit.noise import audit_noise
    from edp_mx.dp.privacy.clipping import ClippedSum
    from edp_mx.dp.privacy.mechanism import Mechanism
    from edp_mx.runtime import distributed

    workers = distributed.start()
    take, segments = ClippedSum.take, Mechanism._noise_segments

    def divide_by_drawn(self):
        values, factor = take(self)
        return values, factor * few.release.micro_batch_size / max(self.num_units, 1)

    def noise_forgotten(self, multiplier):
        for part, stddev in segments(self, multiplier):
            yield part, 0.0 if workers.rank == workers.size - 1 else stddev

    def audited(step, **settings):
        noise = audit_noise(workers, step, size=size, confidence=SURE)
        found = attack(workers, step, significance=SIGNIFICANCE, **settings)
        return {"noise": noise.to_dict(), **found}

    common = {"unit": "utterance", "adjacency": "zero_out", "layer_scales": SCALES}
    many = audited_step(2, micro_batch_size=8, clipping="ghost", **common)
    few = audited_step(2, micro_batch_size=4, **common)
    spread = {"slots": 16, "against": 0, "draws": 3200}
    opposed = {"slots": 1, "against": 1, "draws": 300}
    found = {"spread": audited(many, **spread), "opposed": audited(few, **opposed)}
    with mock.patch.object(Mechanism, "_noise_segments", noise_forgotten):
        found["noise forgotten on one rank"] = audited(many, **spread)
    with mock.patch.object(ClippedSum, "take", divide_by_drawn):  # μ = 4: half of it is enough
        found["divided by the drawn size"] = audited(few, **{**opposed, "draws": 160})
    return found


@pytest.fixture(scope="module")
def audits():
    return run_workers(audit_worker, 2, 20_000)


@pytest.mark.parametrize("way, batch", [("spread", 16), ("opposed", 8)])
def test_a_sound_system_is_not_refuted(audits, way, batch):
    found = audits[0][way]
    assert not found["noise"]["refuted"] and found["mu"] < 1  # claimed: κ C / (κ C z)
    without, with_it = found["means"]  # one example's C / B apart, ± 6 standard errors
    assert with_it - without == pytest.approx(1 / batch, abs=9 / batch / 300**0.5)


def test_the_attack_reaches_most_of_what_is_claimed(audits):
    assert audits[0]["spread"]["mu"] > 0.6


@pytest.mark.parametrize("bug", ["noise forgotten on one rank", "divided by the drawn size"])
def test_a_planted_bug_is_refuted(audits, bug):
    assert audits[0][bug]["mu"] > 1, audits[0][bug]["means"]
