"""One value of ε, with the accountant and the conditions that it belongs to."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Dict, Optional, Tuple

from edp_mx.dp.accounting.lognumber import LogNumber

INFINITE = LogNumber(math.inf)


@dataclass(frozen=True)
class Bound:
    """ε at a δ, and how it was computed.

    Attributes:
        accountant: its name in `accountants.ACCOUNTANTS`; none where nothing can be counted.
        conversion: from ρ to ε (simple, renyi, exact or none), or the end of an interval taken.
        rho: zCDP; None where the accountant does not use it.
        epsilon_lower: no smaller ε holds (poisson_pld only).
        epsilon_renyi, epsilon_zcdp: looser bounds, by the best Rényi order and by ρ + 2√(ρ ln 1/δ).
        reasons: why ε is ∞.
        conditions: assumptions under which it holds; empty for an ε that holds outright.
    """

    accountant: str
    conversion: str
    epsilon: LogNumber
    rho: Optional[LogNumber] = None
    epsilon_lower: Optional[LogNumber] = None
    epsilon_renyi: Optional[LogNumber] = None
    epsilon_zcdp: Optional[LogNumber] = None
    reasons: Tuple[str, ...] = ()
    conditions: Tuple[str, ...] = ()

    def is_within(self, epsilon: float) -> bool:
        """Return whether this ε is at most another."""
        return self.epsilon.value is not None and self.epsilon.value <= epsilon

    def to_dict(self) -> Dict[str, Any]:
        """Return strict JSON: a number beyond a double is null beside its log10, ∞ null twice."""
        result: Dict[str, Any] = {"accountant": self.accountant, "conversion": self.conversion}
        for name in ("rho", "epsilon", "epsilon_lower", "epsilon_renyi", "epsilon_zcdp"):
            number: Optional[LogNumber] = getattr(self, name)
            if number is not None:
                result[name] = number.value
                result[f"log10_{name}"] = number.log10
        if self.reasons:
            result["reason"] = "; ".join(self.reasons)
        if self.conditions:
            result["conditions"] = list(self.conditions)
        return result


def unbounded(*reasons: str) -> Bound:
    """Return ε = ∞, with its reasons."""
    return Bound("none", "none", INFINITE, rho=INFINITE, reasons=reasons)
