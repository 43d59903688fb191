"""All accountants: some give an ε that holds, others are only shown beside it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Callable, Dict, List, Optional, Tuple

from edp_mx.dp.accounting.bound import Bound
from edp_mx.dp.accounting.choices import NEIGHBOURS
from edp_mx.dp.accounting.events import Composition
from edp_mx.dp.accounting.lognumber import LogNumber, log_of
from edp_mx.dp.accounting.pld.interval import epsilon_poisson_pld, upper_epsilon_poisson_pld
from edp_mx.dp.accounting.rdp import epsilon_poisson_rdp
from edp_mx.dp.accounting.release import Release
from edp_mx.dp.accounting.zcdp import CONVERSIONS, log_epsilon_gdp_clt, log_rho_of, yu_rs_of_steps


@dataclass(frozen=True)
class Accountant:
    """One way of computing the ε of a composition.

    To add one, list it in `ACCOUNTANTS`; the tables, the command line and the refusals read that.

    Attributes:
        sampler: whose events it accounts for.
        conversion: as in `Bound`.
        logs: the logarithms of ε, and of the other numbers of a `Bound`, at a δ; −inf for ε without
            events, inf where a multiplier is 0. Refuses the events of another sampler.
        is_bound: whether its ε holds; False for accountants that are shown for comparison only.
        neighbours: those for which it has a pair of distributions.
        alone: log ε without the other numbers, where that takes less time.
        is_gaussian: all that it counts is one Gaussian mechanism of that ρ, neither less nor more.
        said: a description in words, where it is the paper's.
    """

    name: str
    sampler: str
    conversion: str
    logs: Callable[[Composition, float], Dict[str, float]]
    is_bound: bool = True
    neighbours: Tuple[str, ...] = NEIGHBOURS
    alone: Optional[Callable[[Composition, float], float]] = None
    is_gaussian: bool = False
    said: str = ""

    def count(self, composition: Composition, *, delta: float) -> Bound:
        """Return ε at δ, which holds where `is_bound`."""
        logs = self.logs(composition, delta)
        numbers: Dict[str, Any] = {name: LogNumber(log) for name, log in logs.items()}
        return Bound(self.name, self.conversion, **numbers)

    def log_epsilon(self, composition: Composition, delta: float) -> float:
        """Return log ε at δ, −inf for 0."""
        if self.alone is not None:
            return self.alone(composition, delta)
        return self.logs(composition, delta)["epsilon"]


def _rf(composition: Composition, delta: float, conversion: str) -> Dict[str, float]:
    """Shuffled epochs, each record at most once in each: one Gaussian with μ² = 2ρ, exactly."""
    log = log_rho_of(composition.only("shuffle"))
    return {"rho": log, "epsilon": CONVERSIONS[conversion](log, delta)}


def _rf_exact(composition: Composition, delta: float) -> Dict[str, float]:
    """The same, with its looser conversions beside it."""
    looser = {"epsilon_renyi": "renyi", "epsilon_zcdp": "simple"}
    others = {key: _rf(composition, delta, name)["epsilon"] for key, name in looser.items()}
    return {**_rf(composition, delta, "exact"), **others}


@lru_cache(maxsize=256)
def _poisson_pld(composition: Composition, delta: float) -> Dict[str, float]:
    """Poisson-sampled steps by the distribution of their privacy loss: the upper end.

    Kept, since several tables ask for an interval that takes a second.
    """
    found = epsilon_poisson_pld(composition, delta=delta)
    logs = {"epsilon": log_of(found.upper), "epsilon_lower": log_of(found.lower)}
    if composition.neighbours == "zero_out":
        logs["epsilon_renyi"] = log_of(epsilon_poisson_rdp(composition, delta=delta))
    return logs


def _paper_rs(composition: Composition, delta: float) -> Dict[str, float]:
    """The same steps as Yu et al. (2019) estimate them; NOT a bound."""
    steps = [
        (event.sample_rate, event.effective_noise_multiplier, event.count)
        for event in composition.only("poisson")
    ]
    return {"epsilon": log_of(yu_rs_of_steps(steps, delta=delta)["epsilon"])}


# The first of each sampler is the one whose ε is claimed.
ACCOUNTANTS: Dict[str, Accountant] = {
    accountant.name: accountant
    for accountant in (
        Accountant("rf_exact", "shuffle", "exact", _rf_exact, is_gaussian=True),
        Accountant("rf_renyi", "shuffle", "renyi", partial(_rf, conversion="renyi")),
        Accountant("rf_zcdp", "shuffle", "simple", partial(_rf, conversion="simple")),
        Accountant(
            "poisson_pld",
            "poisson",
            "upper end of an interval",
            _poisson_pld,
            alone=lambda steps, delta: log_of(upper_epsilon_poisson_pld(steps, delta=delta)),
        ),
        Accountant(
            "poisson_rdp",
            "poisson",
            "renyi",
            lambda steps, delta: {"epsilon": log_of(epsilon_poisson_rdp(steps, delta=delta))},
            neighbours=("zero_out",),
        ),
        Accountant(
            "gdp_clt",
            "poisson",
            "exact",
            lambda steps, delta: {"epsilon": log_epsilon_gdp_clt(steps, delta)},
            is_bound=False,
        ),
        Accountant(
            "paper_rs",
            "poisson",
            "heuristic of its authors",
            _paper_rs,
            is_bound=False,
            said="paper_rs: Yu et al. (2019), approximate according to its authors",
        ),
    )
}


def claimed_for(release: Release) -> Accountant:
    """Return the accountant whose ε is claimed for the steps of a release."""
    return _accountants_for(release.sampler, release.neighbours)[0]


def count_claimed(composition: Composition, *, delta: float) -> Bound:
    """Return ε by the accountant that is claimed for such events, which are of one sampler."""
    return _accountants_of(composition)[0].count(composition, delta=delta)


def count_with_all(composition: Composition, *, delta: float) -> List[Bound]:
    """Return ε by every accountant of these events: the claimed one first, non-bounds last."""
    return [one.count(composition, delta=delta) for one in _accountants_of(composition)]


def is_gaussian(bound: Bound) -> bool:
    """Return whether a bound counts a single Gaussian mechanism, whose limits are exact."""
    return bound.accountant in ACCOUNTANTS and ACCOUNTANTS[bound.accountant].is_gaussian


def _accountants_for(sampler: str, neighbours: str) -> List[Accountant]:
    """The accountants of such events, in the order of the registry."""
    return [a for a in ACCOUNTANTS.values() if a.sampler == sampler and neighbours in a.neighbours]


def _accountants_of(composition: Composition) -> List[Accountant]:
    """The same for the events of a composition; for shuffled epochs where it has none."""
    sampler = composition.events[0].sampler if composition.events else "shuffle"
    return _accountants_for(sampler, composition.neighbours)
