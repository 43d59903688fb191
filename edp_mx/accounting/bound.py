"""One ε with all that says which: as the paper counts it, or as it holds for what ran."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Dict, Optional, Sequence, Tuple

from edp_mx.accounting.accountants import log_rho_of
from edp_mx.accounting.decay import Decay
from edp_mx.accounting.events import Composition
from edp_mx.accounting.ledger import Entry
from edp_mx.accounting.lognumber import LogNumber, log_of
from edp_mx.accounting.pld import epsilon_poisson_pld
from edp_mx.accounting.rdp import epsilon_poisson_rdp
from edp_mx.accounting.release import Release
from edp_mx.accounting.zcdp import (
    log_epsilon_exact,
    log_epsilon_renyi,
    log_epsilon_simple,
    log_rho,
    log_rho_rf,
)

INFINITE = LogNumber(math.inf)
NO_NOISE = "the noise multiplier is 0, so nothing hides an utterance"


@dataclass(frozen=True)
class Bound:
    """ε at a δ, and how it was counted.

    Attributes:
        accountant: zcdp_paper (z as it is, κ = 1), rf_exact (z_eff), poisson_pld, or none.
        conversion: from ρ to ε: simple, exact, or none; how an interval was read.
        rho: zCDP; None where the accountant does not go by it.
        epsilon: ε; ∞ has its `reasons`.
        epsilon_lower: no ε below it holds (poisson_pld only).
        epsilon_renyi: ε by the optimal Rényi order, a looser bound.
        epsilon_zcdp: ε = ρ + 2√(ρ ln 1/δ), looser still (rf_exact only).
        reasons: why ε is ∞.
        conditions: what is taken as given; empty for an ε that holds outright.
    """

    accountant: str
    conversion: str
    rho: Optional[LogNumber]
    epsilon: LogNumber
    epsilon_lower: Optional[LogNumber] = None
    epsilon_renyi: Optional[LogNumber] = None
    epsilon_zcdp: Optional[LogNumber] = None
    reasons: Tuple[str, ...] = ()
    conditions: Tuple[str, ...] = ()

    def to_dict(self) -> Dict[str, Any]:
        """Strict JSON: a number beyond a double is null beside its log10; ∞ is null in both."""
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


def count_as_published(
    *, noise_multiplier: float, decay: Decay, epochs: int, delta: float
) -> Bound:
    """ε as the paper counts it: z as it is, κ = 1, ρ + 2√(ρ ln 1/δ).

    Source: eDP-SGD, Table 1; Yu et al. (2019) for shuffled epochs.
    """
    log_rho = log_rho_rf(noise_multiplier, decay=decay, epochs=epochs)
    return Bound(
        accountant="zcdp_paper",
        conversion="simple",
        rho=LogNumber(log_rho),
        epsilon=LogNumber(log_epsilon_simple(log_rho, delta)),
        reasons=(NO_NOISE,) if log_rho == math.inf else (),
    )


def count_what_holds(
    *,
    release: Release,
    noise_multiplier: float,
    decay: Decay,
    epochs: int,
    delta: float,
    conditions: Tuple[str, ...] = (),
) -> Bound:
    """ε that holds for whoever sees every aggregate of shuffled epochs of disjoint batches.

    Guarantee: exact for the worst pair of neighbours, since Gaussian releases compose to one
    Gaussian with μ² = Σ 1 / z_eff,t² = 2ρ.
    """
    effective = release.effective_noise_multiplier(noise_multiplier)
    log_rho = log_rho_rf(effective, decay=decay, epochs=epochs)
    return Bound(
        accountant="rf_exact",
        conversion="exact",
        rho=LogNumber(log_rho),
        epsilon=LogNumber(log_epsilon_exact(log_rho, delta)),
        epsilon_renyi=LogNumber(log_epsilon_renyi(log_rho, delta)),
        epsilon_zcdp=LogNumber(log_epsilon_simple(log_rho, delta)),
        reasons=(NO_NOISE,) if log_rho == math.inf else (),
        conditions=conditions,
    )


def count_released_as_published(entries: Sequence[Entry], *, delta: float) -> Bound:
    """As `count_as_published`, from what a ledger holds: each epoch once, with its own z_t."""
    log = log_rho(entry.noise_multiplier for entry in entries if entry.noise_multiplier is not None)
    return Bound(
        accountant="zcdp_paper",
        conversion="simple",
        rho=LogNumber(log),
        epsilon=LogNumber(log_epsilon_simple(log, delta)),
        reasons=(NO_NOISE,) if log == math.inf else (),
    )


def count_released(
    composition: Composition, *, delta: float, conditions: Tuple[str, ...] = ()
) -> Bound:
    """ε that holds for all that was released: rf_exact for shuffled epochs, else poisson_pld.

    Raises:
        UserError: events of both samplers, which no accountant here composes.
    """
    if all(event.sampler == "shuffle" for event in composition.events):
        log = log_rho_of(composition)
        return Bound(
            accountant="rf_exact",
            conversion="exact",
            rho=LogNumber(log),
            epsilon=LogNumber(log_epsilon_exact(log, delta)),
            epsilon_renyi=LogNumber(log_epsilon_renyi(log, delta)),
            epsilon_zcdp=LogNumber(log_epsilon_simple(log, delta)),
            reasons=(NO_NOISE,) if log == math.inf else (),
            conditions=conditions,
        )
    found = epsilon_poisson_pld(composition, delta=delta)
    renyi = None
    if composition.neighbours == "zero_out":
        renyi = LogNumber(log_of(epsilon_poisson_rdp(composition, delta=delta)))
    return Bound(
        accountant="poisson_pld",
        conversion="upper end of an interval",
        rho=None,
        epsilon=LogNumber(log_of(found.upper)),
        epsilon_lower=LogNumber(log_of(found.lower)),
        epsilon_renyi=renyi,
        reasons=(NO_NOISE,) if found.upper == math.inf else (),
        conditions=conditions,
    )


def unbounded(*reasons: str) -> Bound:
    """ε = ∞, with its reasons."""
    return Bound("none", "none", INFINITE, INFINITE, reasons=reasons)
