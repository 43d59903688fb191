"""All accountants: those whose ε holds, and those that are only shown beside them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import lru_cache
from typing import Dict, List, Optional, Tuple

from edp_mx.accounting.bound import Bound
from edp_mx.accounting.choices import NEIGHBOURS, check_choice
from edp_mx.accounting.events import Composition
from edp_mx.accounting.gdp import log_epsilon_gdp_clt
from edp_mx.accounting.lognumber import LogNumber, log_of
from edp_mx.accounting.pld.interval import epsilon_poisson_pld
from edp_mx.accounting.rdp import epsilon_poisson_rdp
from edp_mx.accounting.release import Release
from edp_mx.accounting.zcdp import CONVERSIONS, log_rho_of, yu_rs_of_steps
from edp_mx.errors import UserError


class Accountant(ABC):
    """One way of computing the ε of a composition.

    To add one, write a subclass in a file of its own and list it in `ACCOUNTANTS`; the tables, the
    command line and the refusals read the registry.

    Attributes:
        name: under which it is registered.
        sampler: whose events it accounts for.
        is_bound: whether its ε holds; False for accountants that are shown for comparison only.
        neighbours: those for which it has a pair of distributions.
    """

    name: str
    sampler: str
    is_bound: bool = True
    neighbours: Tuple[str, ...] = NEIGHBOURS

    @abstractmethod
    def count(self, composition: Composition, *, delta: float) -> Bound:
        """Return ε at δ.

        Raises:
            UserError: events of a sampler, or neighbours, that it cannot account for.

        Guarantee: the ε returned holds where `is_bound`.

        Edge cases: no events give 0; a multiplier of 0 gives ∞.
        """


class RFExact(Accountant):
    """Shuffled epochs, each record at most once in each: one Gaussian with μ² = 2ρ, exactly."""

    name, sampler = "rf_exact", "shuffle"

    def count(self, composition: Composition, *, delta: float) -> Bound:
        log = log_rho_of(composition.only("shuffle"))
        numbers = {name: LogNumber(convert(log, delta)) for name, convert in CONVERSIONS.items()}
        return Bound(
            accountant=self.name,
            conversion="exact",
            rho=LogNumber(log),
            epsilon=numbers["exact"],
            epsilon_renyi=numbers["renyi"],
            epsilon_zcdp=numbers["simple"],
        )


class RFConverted(Accountant):
    """The same Gaussian by a looser conversion from ρ: its best Rényi order, or the paper's."""

    sampler = "shuffle"

    def __init__(self, name: str, *, conversion: str) -> None:
        self.name, self._conversion = name, conversion

    def count(self, composition: Composition, *, delta: float) -> Bound:
        log = log_rho_of(composition.only("shuffle"))
        epsilon = LogNumber(CONVERSIONS[self._conversion](log, delta))
        return Bound(self.name, self._conversion, epsilon, rho=LogNumber(log))


class PoissonPLD(Accountant):
    """Poisson-sampled steps by the distribution of their privacy loss: the upper end."""

    name, sampler = "poisson_pld", "poisson"

    def count(self, composition: Composition, *, delta: float) -> Bound:
        lower, upper = _pld(composition, delta)
        renyi: Optional[LogNumber] = None
        if composition.neighbours in PoissonRDP.neighbours:
            renyi = LogNumber(log_of(epsilon_poisson_rdp(composition, delta=delta)))
        return Bound(
            accountant=self.name,
            conversion="upper end of an interval",
            epsilon=LogNumber(log_of(upper)),
            epsilon_lower=LogNumber(log_of(lower)),
            epsilon_renyi=renyi,
        )


class PoissonRDP(Accountant):
    """The same steps by Rényi divergences; quicker and looser."""

    name, sampler, neighbours = "poisson_rdp", "poisson", ("zero_out",)

    def count(self, composition: Composition, *, delta: float) -> Bound:
        epsilon = epsilon_poisson_rdp(composition, delta=delta)
        return Bound(self.name, "renyi", LogNumber(log_of(epsilon)))


class GDPCLT(Accountant):
    """The same steps by the central limit; NOT a bound."""

    name, sampler, is_bound = "gdp_clt", "poisson", False

    def count(self, composition: Composition, *, delta: float) -> Bound:
        return Bound(self.name, "exact", LogNumber(log_epsilon_gdp_clt(composition, delta)))


class PaperRS(Accountant):
    """The same steps as Yu et al. (2019) estimate them; NOT a bound."""

    name, sampler, is_bound = "paper_rs", "poisson", False

    def count(self, composition: Composition, *, delta: float) -> Bound:
        steps = [
            (event.sample_rate, event.effective_noise_multiplier, event.count)
            for event in composition.only("poisson")
        ]
        log = log_of(yu_rs_of_steps(steps, delta=delta)["epsilon"]) if steps else -math.inf
        return Bound(self.name, "heuristic of its authors", LogNumber(log))


# The first of each sampler is the one whose ε is claimed.
ACCOUNTANTS: Dict[str, Accountant] = {
    accountant.name: accountant
    for accountant in (
        RFExact(),
        RFConverted("rf_renyi", conversion="renyi"),
        RFConverted("rf_zcdp", conversion="simple"),
        PoissonPLD(),
        PoissonRDP(),
        GDPCLT(),
        PaperRS(),
    )
}


def count_with(name: str, composition: Composition, *, delta: float) -> Bound:
    """Return ε by the accountant of that name.

    Raises:
        UserError: an unknown name, or events of a sampler that it does not account for.

    Example:
        >>> from edp_mx.accounting.events import Event
        >>> steps = Composition("zero_out", [Event("poisson", 1.1, 1000, 0.01)])
        >>> str(count_with("gdp_clt", steps, delta=5e-4).epsilon)
        '0.990465'
    """
    check_choice("accountant", name, ACCOUNTANTS)
    return ACCOUNTANTS[name].count(composition, delta=delta)


def count_claimed(composition: Composition, *, delta: float) -> Bound:
    """Return ε by the accountant that is claimed for such events: rf_exact or poisson_pld.

    Raises:
        UserError: events of both samplers, which no accountant here composes.
    """
    return _accountants_of(composition)[0].count(composition, delta=delta)


def count_with_all(composition: Composition, *, delta: float) -> List[Bound]:
    """Return ε by every accountant of these events: the claimed one first, non-bounds last."""
    return [one.count(composition, delta=delta) for one in _accountants_of(composition)]


def check_claim(name: str, release: Release) -> None:
    """Refuse to claim the ε of an accountant that does not hold for a release.

    Raises:
        UserError: an accountant that gives no bound, or none for the release's sampler or
            neighbours.
    """
    check_choice("accountant", name, ACCOUNTANTS)
    accountant = ACCOUNTANTS[name]
    holding = " or ".join(
        a.name for a in _accountants_for(release.sampler, release.neighbours) if a.is_bound
    )
    if not accountant.is_bound:
        raise UserError(f"{name} is not a bound: it can be shown beside one, not claimed")
    if accountant.sampler != release.sampler:
        raise UserError(
            f"{name} counts {accountant.sampler} sampling, but the sampler is {release.sampler}; "
            f"choose {holding}"
        )
    if release.neighbours not in accountant.neighbours:
        raise UserError(
            f"{name} counts {' and '.join(accountant.neighbours)} neighbours, but the adjacency is "
            f"{release.adjacency}; choose {holding}"
        )


def _accountants_for(sampler: str, neighbours: str) -> List[Accountant]:
    """The accountants of such events, in the order of the registry."""
    return [a for a in ACCOUNTANTS.values() if a.sampler == sampler and neighbours in a.neighbours]


def _accountants_of(composition: Composition) -> List[Accountant]:
    """The same for the events of a composition; those of shuffled epochs where it has none."""
    sampler = composition.events[0].sampler if composition.events else "shuffle"
    return _accountants_for(sampler, composition.neighbours)


@lru_cache(maxsize=256)
def _pld(composition: Composition, delta: float) -> Tuple[float, float]:
    """Both ends of the interval, kept since several tables ask for one that takes a second."""
    found = epsilon_poisson_pld(composition, delta=delta)
    return found.lower, found.upper
