"""All ways of counting one ε, side by side: those that hold and those that only look so."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Callable, Dict, List, Optional, Tuple

import numpy as np

from edp_mx.accounting.events import Composition, neighbours_of
from edp_mx.accounting.gdp import log_epsilon_gdp_clt
from edp_mx.accounting.lognumber import LogNumber, log_of
from edp_mx.accounting.pld import upper_epsilon_poisson_pld
from edp_mx.accounting.rdp import epsilon_poisson_rdp
from edp_mx.accounting.release import Release
from edp_mx.accounting.zcdp import (
    log_epsilon_exact,
    log_epsilon_renyi,
    log_epsilon_simple,
    log_rho,
    yu_rs_of_steps,
)
from edp_mx.errors import UserError


@dataclass(frozen=True)
class Count:
    """ε as one accountant counts it.

    Attributes:
        accountant: its name.
        epsilon: ε.
        is_bound: whether it holds; False for what is shown for comparison only.
    """

    accountant: str
    epsilon: LogNumber
    is_bound: bool


def _rf(convert: Callable[[float, float], float]) -> Callable[[Composition, float], float]:
    """Shuffled epochs by one of the conversions from ρ."""
    return lambda composition, delta: convert(log_rho_of(composition), delta)


def _pld(composition: Composition, delta: float) -> float:
    return log_of(upper_epsilon_poisson_pld(composition, delta=delta))


def _rdp(composition: Composition, delta: float) -> float:
    return log_of(epsilon_poisson_rdp(composition, delta=delta))


def _paper_rs(composition: Composition, delta: float) -> float:
    steps = [
        (event.sample_rate, event.effective_noise_multiplier, event.count)
        for event in composition.only("poisson")
    ]
    return log_of(yu_rs_of_steps(steps, delta=delta)["epsilon"]) if steps else -math.inf


# name -> (the sampler that it speaks of, whether it holds, how it counts)
ACCOUNTANTS: Dict[str, Tuple[str, bool, Callable[[Composition, float], float]]] = {
    "rf_exact": ("shuffle", True, _rf(log_epsilon_exact)),
    "rf_renyi": ("shuffle", True, _rf(log_epsilon_renyi)),
    "rf_zcdp": ("shuffle", True, _rf(log_epsilon_simple)),
    "poisson_pld": ("poisson", True, _pld),
    "poisson_rdp": ("poisson", True, _rdp),
    "gdp_clt": ("poisson", False, log_epsilon_gdp_clt),
    "paper_rs": ("poisson", False, _paper_rs),
}


def count_with(accountant: str, composition: Composition, *, delta: float) -> Count:
    """ε by the accountant of that name.

    Raises:
        UserError: an unknown name, or events of a sampler that it does not speak of.

    Example:
        >>> from edp_mx.accounting.events import Event
        >>> steps = Composition("zero_out", [Event("poisson", 1.1, 1000, 0.01)])
        >>> str(count_with("gdp_clt", steps, delta=5e-4).epsilon)
        '0.990465'
    """
    if accountant not in ACCOUNTANTS:
        raise UserError(f"accountant is {accountant!r}; choose one of {', '.join(ACCOUNTANTS)}")
    sampler, is_bound, log_epsilon = ACCOUNTANTS[accountant]
    composition.only(sampler)
    return Count(accountant, LogNumber(log_epsilon(composition, delta)), is_bound)


def count_with_all(composition: Composition, *, delta: float) -> List[Count]:
    """ε by every accountant that speaks of these events, tightest bound first, no bounds last."""
    sampler = composition.events[0].sampler if composition.events else "shuffle"
    return [
        count_with(name, composition, delta=delta)
        for name, (of, _, _) in ACCOUNTANTS.items()
        if of == sampler and _speaks_of(name, composition.neighbours)
    ]


def check_claim(*, accountant: str, release: Release, kappa: Optional[float] = None) -> None:
    """Refuses to count what somebody claims without a ground.

    Args:
        accountant: its name.
        release: what a step gives away.
        kappa: as claimed; left out it is that of the release.

    Raises:
        UserError: an accountant that does not hold, or not for the release's sampler or
            neighbours; or a κ below that of the release, such as 1 for a clipped mean of several
            under replace-one.
    """
    if accountant not in ACCOUNTANTS:
        raise UserError(f"accountant is {accountant!r}; choose one of {', '.join(ACCOUNTANTS)}")
    sampler, is_bound, _ = ACCOUNTANTS[accountant]
    if not is_bound:
        raise UserError(f"{accountant} is not a bound: it can be shown beside one, not claimed")
    if sampler != release.sampler:
        raise UserError(
            f"{accountant} counts {sampler} sampling, but the sampler is {release.sampler}; "
            f"choose {' or '.join(_bounds_of(release))}"
        )
    if not _speaks_of(accountant, neighbours_of(release)):
        raise UserError(
            f"{accountant} counts zero_out neighbours, but the adjacency is {release.adjacency}; "
            f"choose {' or '.join(_bounds_of(release))}"
        )
    if kappa is not None and kappa < release.kappa:
        raise UserError(
            f"kappa is {kappa:g}, but one utterance can move a clipped mean of "
            f"{release.micro_batch_size:g} by {release.kappa:g} C ({release.adjacency}, "
            f"{release.sampler}): a clipped mean can be turned round; leave kappa out"
        )


def _bounds_of(release: Release) -> List[str]:
    """The accountants that hold for a release."""
    return [
        name
        for name, (of, holds, _) in ACCOUNTANTS.items()
        if of == release.sampler and holds and _speaks_of(name, neighbours_of(release))
    ]


def _speaks_of(accountant: str, neighbours: str) -> bool:
    """Whether an accountant has a pair for these neighbours; of Rényi's only zero-out is known."""
    return accountant != "poisson_rdp" or neighbours == "zero_out"


def log_rho_of(composition: Composition) -> float:
    """log ρ of shuffled epochs: Σ count / (2 z²)."""
    logs = [
        math.log(event.count) + log_rho([event.effective_noise_multiplier])
        for event in composition.only("shuffle")
    ]
    return float(np.logaddexp.reduce(logs)) if logs else -math.inf
