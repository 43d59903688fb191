"""Verdict of an audit on a claimed ε."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, Tuple

from edp_mx.dp.accounting.bound import Bound
from edp_mx.dp.accounting.lognumber import log_of

SUBJECTS = {"step": "one step", "one-run": "the run"}
CLAIMS = {"published": "the published accounting", "holds": "the accounting that holds"}


@dataclass(frozen=True)
class Verdict:
    """Measured lower bound on the ε of the attacked step or run, beside the claims on it.

    Attributes:
        claim: the audited one of `claims`, published (the paper's) or holds.
        details: the basis of the bound, for strict JSON.
        said: the same in lines for people.

    Guarantee: a true claim is refuted with probability 1 − confidence at most. A claim that is not
    refuted may still be false.
    """

    audit: str
    bound: float
    confidence: float
    delta: float
    claim: str
    claims: Dict[str, Bound]
    details: Dict[str, Any] = field(default_factory=dict)
    said: Tuple[str, ...] = ()

    @property
    def is_refuted(self) -> bool:
        """Whether more leaks than the audited claim allows."""
        return self.refutes(self.claim)

    def refutes(self, claim: str) -> bool:
        return log_of(self.bound) > self.claims[claim].epsilon.log

    def to_dict(self) -> Dict[str, Any]:
        return {
            "audit": self.audit,
            "subject": SUBJECTS[self.audit],
            "epsilon_at_least": self.bound,
            "confidence": self.confidence,
            "delta": self.delta,
            "audited": self.claim,
            "refuted": self.is_refuted,
            "claims": {
                name: {**bound.to_dict(), "refuted": self.refutes(name)}
                for name, bound in self.claims.items()
            },
            **self.details,
        }

    def describe(self) -> str:
        """Return a sentence on the audited claim, one on the other, and their basis."""
        word = "REFUTED" if self.is_refuted else "not refuted"
        lines = [
            f"{word}: at {100 * self.confidence:.6g} % confidence {SUBJECTS[self.audit]} leaks at "
            f"least epsilon = {self.bound:.3g} at delta = {self.delta:.3g}; "
            f"{self._say(self.claim)}"
        ]
        for other in self.claims:
            if other != self.claim:
                refuted = "refuted as well" if self.refutes(other) else "not refuted"
                lines.append(f"  for comparison, {self._say(other)}: {refuted}")
        return "\n".join([*lines, *self.said])

    def _say(self, claim: str) -> str:
        epsilon = self.claims[claim].epsilon
        said = "no bound at all" if epsilon.is_infinite else str(epsilon)
        return f"{CLAIMS[claim]} claims {said}"
