"""Audit A0: whether the noise that workers release is the noise that the accountant counts."""

from __future__ import annotations

import hashlib
import itertools
import math
from dataclasses import asdict, dataclass
from typing import Any, Dict, List, Sequence, Tuple

import numpy as np
from scipy.special import ndtri
from scipy.stats import chi2

from edp_mx.attacks.audit.audited_step import AuditedStep
from edp_mx.attacks.audit.probe import Probe
from edp_mx.runtime.distributed import Workers

ABOUT_PUBLISHED = """\
Only the noise was looked at, and it is what the published algorithm draws. Whether the paper's
epsilon holds is another question, which `edp-mx audit step`
asks of the same settings."""
LISTENED = 20_000  # coordinates of the message of each worker that are compared


@dataclass(frozen=True)
class Check:
    """Measured number and the interval that must contain it if the claim is true."""

    name: str
    measured: float
    lowest: float
    highest: float

    @property
    def is_passed(self) -> bool:
        return self.lowest <= self.measured <= self.highest


@dataclass(frozen=True)
class NoiseAudit:
    """Outcome of A0; a sound system passes all checks with probability `confidence`."""

    checks: Tuple[Check, ...]
    confidence: float
    variant: str = "calibrated"

    @property
    def is_refuted(self) -> bool:
        return not all(check.is_passed for check in self.checks)

    def to_dict(self) -> Dict[str, Any]:
        return {
            "audit": "noise",
            "refuted": self.is_refuted,
            "confidence": self.confidence,
            "checks": [
                {
                    **asdict(check),
                    "measured": check.measured if math.isfinite(check.measured) else None,
                    "passed": check.is_passed,
                }
                for check in self.checks
            ],
        }

    def describe(self) -> str:
        failed = [check.name for check in self.checks if not check.is_passed]
        verdict = (
            f"REFUTED: the noise is not as large as the accounting assumes ({'; '.join(failed)})"
            if failed
            else "not refuted: the noise is as large as the accounting assumes"
        )
        lines = [f"{verdict}; a sound system passes with probability {self.confidence:.8g}"]
        lines += [
            f"  {'ok    ' if check.is_passed else 'FAILED'} {check.name}: {check.measured:.6g} "
            f"(from {check.lowest:.6g} to {check.highest:.6g})"
            for check in self.checks
        ]
        if self.variant == "published" and not failed:
            lines.append(ABOUT_PUBLISHED)
        return "\n".join(lines)


def audit_noise(
    workers: Workers,
    step: AuditedStep,
    *,
    size: int = 100_000,
    steps: int = 4,
    confidence: float = 0.999999,
) -> NoiseAudit:
    """Run steps with zero gradients through the real trainer and all-reduce, and test the result.

    Args:
        workers: this worker among all; each calls this with the same arguments.
        step: the settings, whose `Release` has the expected noise.
        size: coordinates of each layer.
        confidence: the probability with which a sound system passes all checks together.

    Returns:
        The same on every worker: the standard deviation per layer (χ²), the correlations from step
        to step and from worker to worker, equal weights and different noise keys.

    Guarantee: by default the standard deviation is measured to 1 % (half a million draws per
    layer), so that one silent worker of 8 (−6.5 %) fails.
    """
    probe = Probe(step, size=size)
    sampler = step.build_sampler(workers.rank)
    releases: List[List[np.ndarray]] = []
    while len(releases) < steps:
        for draw in itertools.islice(sampler.draws(len(releases)), steps - len(releases)):
            zeros = [np.zeros((len(draw.records), size), np.float32) for _ in step.layer_scales]
            releases.append(probe.released(zeros, draw.sizes.tolist()))
    digest = hashlib.sha256(b"".join(part.tobytes() for part in probe.weights())).hexdigest()
    fingerprints = workers.gather(probe.fingerprint)
    messages = workers.gather(probe.mechanism.sent[:LISTENED])  # of layer 0, (LISTENED,) per worker
    digests = workers.gather(digest)

    pairs = list(itertools.combinations(range(workers.size), 2))
    tests = len(step.layer_scales) + steps - 1 + len(pairs)
    significance = (1 - confidence) / tests
    claimed = probe.release.aggregate_noise_stddev(step.plan.noise_multiplier)  # (L,)
    checks = [
        _spread(f"noise on layer {k}, stddev", [r[k] for r in releases], stddev, significance)
        for k, stddev in enumerate(claimed)
    ]
    flat = [np.concatenate([x / s for x, s in zip(r, claimed)]) for r in releases]  # (L · size,)
    checks += [
        _correlation(f"steps {i} and {i + 1}, correlation", flat[i], flat[i + 1], significance)
        for i in range(steps - 1)
    ]
    checks += [
        _correlation(f"workers {i} and {j}, correlation", messages[i], messages[j], significance)
        for i, j in pairs
    ]
    n = workers.size
    checks.append(Check("different noise keys", len(set(fingerprints)), n, n))
    checks.append(Check("different weights after the steps", len(set(digests)), 1, 1))
    return NoiseAudit(tuple(checks), confidence, step.release.variant)


def _spread(name: str, parts: Sequence[np.ndarray], stddev: float, significance: float) -> Check:
    """Compare the standard deviation of all parts around 0 with χ² of as many draws."""
    count = sum(part.size for part in parts)
    squares = sum(float(np.square(part, dtype=np.float64).sum()) for part in parts)
    low, high = chi2.ppf(significance / 2, count), chi2.isf(significance / 2, count)
    return Check(
        name,
        math.sqrt(squares / count),
        stddev * math.sqrt(low / count),
        stddev * math.sqrt(high / count),
    )


def _correlation(name: str, one: np.ndarray, other: np.ndarray, significance: float) -> Check:
    """Compare Pearson's r (NaN for a constant) with 0; its standard error is 1/√n."""
    with np.errstate(invalid="ignore", divide="ignore"):
        r = float(np.corrcoef(one.astype(np.float64), other.astype(np.float64))[0, 1])
    limit = -float(ndtri(significance / 2)) / math.sqrt(len(one))
    return Check(name, r, -limit, limit)
