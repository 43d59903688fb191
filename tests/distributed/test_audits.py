"""A0 and A1 through real workers: what is sound passes, the paper's claim and planted bugs do not.

The bugs are planted in the workers' own processes, by patching the product there.
"""

import pytest
from support.workers import run_workers

SCALES = (1.0, 0.25)
# Keys are the operating system's. With so many draws and these confidences each assertion fails by
# chance less than once in 1e7 (from the binomial and chi-squared distributions themselves).
DRAWS = 400
SURE = 1 - 1e-9  # that a sound system passes all checks of a noise audit
BUGS = (
    "shared_key",
    "shared_stream",
    "silent_worker",
    "clip_after_averaging",
    "rescale_forgotten",
    "noise_unscaled",
)
THE_NOISE_AUDIT_SUFFICES = ("shared_key", "shared_stream", "silent_worker", "noise_unscaled")


def audit_all(names, draws, size):
    """Runs on a worker: both audits of the sound system and of each bug, in one process."""
    from unittest import mock

    import horovod.mxnet as hvd
    import mxnet as mx
    import numpy as np

    from edp_mx.attacks.audit.audited_step import AuditedStep
    from edp_mx.attacks.audit.noise import audit_noise
    from edp_mx.attacks.audit.step import audit_step
    from edp_mx.privacy.clipping import ClippedSum
    from edp_mx.privacy.mechanism import Mechanism
    from edp_mx.privacy.noise import NoiseStream
    from edp_mx.privacy.norm_clipping import LoopClipping
    from edp_mx.runtime import distributed

    workers = distributed.start()
    segments, gradient_of = Mechanism._noise_segments, LoopClipping._gradient_of
    take = ClippedSum.take
    from_system, make_stream = NoiseStream.from_operating_system, NoiseStream.__init__

    def shared_key():
        return NoiseStream(key=bytes(32))

    def shared_stream(self, *, key):
        """Keys and fingerprints differ, but the numbers do not come from the key."""
        make_stream(self, key=key)
        fingerprint = self.fingerprint
        make_stream(self, key=bytes(32))
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

    patches = {
        "shared_key": (NoiseStream, "from_operating_system", shared_key),
        "shared_stream": (NoiseStream, "__init__", shared_stream),
        "silent_worker": (Mechanism, "_noise_segments", silent_worker),
        "clip_after_averaging": (LoopClipping, "_gradient_of", clip_after_averaging),
        "rescale_forgotten": (ClippedSum, "take", rescale_forgotten),
        "noise_unscaled": (Mechanism, "_noise_segments", noise_unscaled),
    }
    found = {}
    for name in names:
        variant = "published" if name == "published" else "calibrated"
        step = AuditedStep(variant=variant, layer_scales=(1.0, 0.25))
        target, attribute, planted = patches.get(
            name, (NoiseStream, "from_operating_system", from_system)
        )
        with mock.patch.object(target, attribute, planted):
            noise = audit_noise(workers, step, size=size, confidence=SURE)
            found[name] = {"noise": (noise.to_dict(), noise.describe())}
            if name in THE_NOISE_AUDIT_SUFFICES:
                continue
            one = audit_step(
                workers,
                step,
                draws=draws,
                confidence=0.9999,  # two rates have to err at once: a sound system fails at 1e-8
                is_alone=name == "clip_after_averaging",
            )
        found[name]["step"] = (one.to_dict(), one.describe())
    return found


@pytest.fixture(
    scope="module", params=[2, pytest.param(8, marks=pytest.mark.slow)], ids=["N=2", "N=8"]
)
def audits(request):
    """All audits of so many workers, in one launch."""
    size = 20_000 if request.param == 2 else 100_000
    names = ("published", "calibrated", *BUGS)
    return run_workers(audit_all, request.param, names, DRAWS, size)


@pytest.mark.parametrize("variant", ["published", "calibrated"])
def test_a_sound_system_is_not_refuted(audits, variant):
    (noise, noise_text), (step, step_text) = (
        audits[0][variant][kind] for kind in ("noise", "step")
    )
    assert not noise["refuted"], noise_text
    assert not step["claims"]["holds"]["refuted"], step_text
    assert all(found[variant] == audits[0][variant] for found in audits)  # on every worker


def test_the_published_accounting_is_refuted_and_the_calibrated_one_is_not(audits):
    published, calibrated = (
        audits[0][variant]["step"][0] for variant in ("published", "calibrated")
    )
    # one step at z = 1, δ = 1e-5 by the paper: 1/2 + 2 √(ln(1e5) / 2)
    claim = published["claims"]["published"]
    assert claim["epsilon"] == pytest.approx(5.2985, abs=1e-3)
    assert claim["refuted"] and published["epsilon_at_least"] > 1.4 * claim["epsilon"]
    assert not calibrated["claims"]["published"]["refuted"]


def test_the_attack_sees_what_the_release_says(audits):
    # κ C α / N apart and C α / N to either side, whatever the noise
    num_workers = len(audits)
    for layer, scale in zip(audits[0]["calibrated"]["step"][0]["layers"], SCALES):
        low, high = layer["means"]
        error = 6 * scale / num_workers * 2 / DRAWS**0.5  # six standard errors of noise 2 α / N
        assert high == pytest.approx(scale / num_workers, abs=error)
        assert low == pytest.approx(-scale / num_workers, abs=error)


def failed(audit):
    return [check["name"] for check in audit["checks"] if not check["passed"]]


LAST = "workers 0 and {last}, correlation"


@pytest.mark.parametrize(
    "bug, checks",
    [
        # a shared stream makes the noise √N too large
        ("shared_key", {LAST, "different noise keys", "noise on layer 0, stddev"}),
        ("shared_stream", {LAST, "noise on layer 0, stddev"}),
        ("silent_worker", {LAST, "noise on layer 1, stddev"}),
        ("noise_unscaled", {"noise on layer 1, stddev"}),
    ],
)
def test_wrong_noise_is_found_by_the_noise_audit(audits, bug, checks):
    noise, _ = audits[0][bug]["noise"]
    names = failed(noise)
    assert noise["refuted"]
    assert {check.format(last=len(audits) - 1) for check in checks} <= set(names)
    assert ("different noise keys" in names) is (bug == "shared_key")
    if bug == "noise_unscaled":  # what is divided by a wrong claim has another standard error
        assert [name for name in names if name.endswith("stddev")] == list(checks)


def test_clipping_after_averaging_is_found_by_the_step_audit(audits):
    step, text = audits[0]["clip_after_averaging"]["step"]
    assert step["refuted"], text
    noise, text = audits[0]["clip_after_averaging"]["noise"]
    assert not noise["refuted"], text  # zero gradients do not show it


def test_a_forgotten_rescaling_is_found_by_the_step_audit(audits):
    step, text = audits[0]["rescale_forgotten"]["step"]
    assert step["refuted"], text
    small = step["layers"][1]
    assert small["scale"] == 0.25 and small["mu"] > 1.5  # the layer whose α was ignored; 1 is right
