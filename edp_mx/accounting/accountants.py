"""All ways of counting one ε: those that hold, and those that are only shown beside them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import replace
from functools import lru_cache
from typing import ClassVar, Dict, List, Optional, Tuple

import numpy as np
from scipy.special import logsumexp

from edp_mx.accounting.bound import Bound
from edp_mx.accounting.events import NEIGHBOURS, Composition
from edp_mx.accounting.gdp import log_epsilon_gdp_clt
from edp_mx.accounting.lognumber import LogNumber, log_of
from edp_mx.accounting.pld import epsilon_poisson_pld
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


class Accountant(ABC):
    """One way of counting the ε of a composition.

    To add one, write a subclass in a file of its own and name it in `ACCOUNTANTS`; the tables, the
    command line and the refusals read the registry.

    Attributes:
        name: under which it is registered.
        sampler: whose events it speaks of.
        is_bound: whether its ε holds; False for what is shown for comparison only.
        neighbours: those that it has a pair of distributions for.
    """

    name: ClassVar[str]
    sampler: ClassVar[str]
    is_bound: ClassVar[bool] = True
    neighbours: ClassVar[Tuple[str, ...]] = NEIGHBOURS

    @abstractmethod
    def count(self, composition: Composition, *, delta: float) -> Bound:
        """ε at δ.

        Raises:
            UserError: events of a sampler, or neighbours, that it does not speak of.

        Guarantee: no ε below the one returned is claimed where `is_bound`.

        Edge cases: no events give 0; a multiplier of 0 gives ∞.
        """


class RFExact(Accountant):
    """Shuffled epochs, each record at most once in each: one Gaussian with μ² = 2ρ, exactly."""

    name, sampler = "rf_exact", "shuffle"

    def count(self, composition: Composition, *, delta: float) -> Bound:
        log = log_rho_of(composition)
        return Bound(
            accountant=self.name,
            conversion="exact",
            rho=LogNumber(log),
            epsilon=LogNumber(log_epsilon_exact(log, delta)),
            epsilon_renyi=LogNumber(log_epsilon_renyi(log, delta)),
            epsilon_zcdp=LogNumber(log_epsilon_simple(log, delta)),
        )


class RFRenyi(Accountant):
    """The same Gaussian by its best Rényi order."""

    name, sampler = "rf_renyi", "shuffle"

    def count(self, composition: Composition, *, delta: float) -> Bound:
        log = log_rho_of(composition)
        return Bound(
            self.name, "renyi", LogNumber(log_epsilon_renyi(log, delta)), rho=LogNumber(log)
        )


class RFZcdp(Accountant):
    """The same Gaussian by ε = ρ + 2√(ρ ln 1/δ), as the paper converts."""

    name, sampler = "rf_zcdp", "shuffle"

    def count(self, composition: Composition, *, delta: float) -> Bound:
        log = log_rho_of(composition)
        return Bound(
            self.name, "simple", LogNumber(log_epsilon_simple(log, delta)), rho=LogNumber(log)
        )


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


# Of each sampler the first is the one that is claimed.
ACCOUNTANTS: Dict[str, Accountant] = {
    accountant.name: accountant
    for accountant in (
        RFExact(), RFRenyi(), RFZcdp(), PoissonPLD(), PoissonRDP(), GDPCLT(), PaperRS(),
    )
}  # fmt: skip


def accountants_for(sampler: str, neighbours: str) -> List[Accountant]:
    """Those that speak of such events; the one that is claimed first, no bounds last."""
    return [a for a in ACCOUNTANTS.values() if a.sampler == sampler and neighbours in a.neighbours]


def sampler_of(composition: Composition) -> str:
    """Whose events these are; shuffled where there are none."""
    return composition.events[0].sampler if composition.events else "shuffle"


def count_with(name: str, composition: Composition, *, delta: float) -> Bound:
    """ε by the accountant of that name.

    Raises:
        UserError: an unknown name, or events of a sampler that it does not speak of.

    Example:
        >>> from edp_mx.accounting.events import Event
        >>> steps = Composition("zero_out", [Event("poisson", 1.1, 1000, 0.01)])
        >>> str(count_with("gdp_clt", steps, delta=5e-4).epsilon)
        '0.990465'
    """
    accountant = accountant_named(name)
    composition.only(accountant.sampler)
    return accountant.count(composition, delta=delta)


def count_claimed(composition: Composition, *, delta: float) -> Bound:
    """ε by the accountant that is claimed for such events: rf_exact or poisson_pld.

    Raises:
        UserError: events of both samplers, which no accountant here composes.
    """
    accountant = accountants_for(sampler_of(composition), composition.neighbours)[0]
    return accountant.count(composition, delta=delta)


def count_with_all(composition: Composition, *, delta: float) -> List[Bound]:
    """ε by every accountant that speaks of these events, the claimed one first, no bounds last."""
    found = accountants_for(sampler_of(composition), composition.neighbours)
    return [accountant.count(composition, delta=delta) for accountant in found]


def accountant_named(name: str) -> Accountant:
    """The accountant of that name.

    Raises:
        UserError: there is none.
    """
    if name not in ACCOUNTANTS:
        raise UserError(f"accountant is {name!r}; choose one of {', '.join(ACCOUNTANTS)}")
    return ACCOUNTANTS[name]


def check_claim(name: str, release: Release, *, kappa: Optional[float] = None) -> None:
    """Refuse to count what somebody claims without a ground.

    Args:
        name: of the accountant.
        release: what a step gives away.
        kappa: as claimed; left out it is that of the release.

    Raises:
        UserError: an accountant that does not hold, or not for the release's sampler or
            neighbours; or a κ below that of the release, such as 1 for a clipped mean of several
            under replace-one.
    """
    accountant = accountant_named(name)
    holding = [a.name for a in accountants_for(release.sampler, release.neighbours) if a.is_bound]
    if not accountant.is_bound:
        raise UserError(f"{name} is not a bound: it can be shown beside one, not claimed")
    if accountant.sampler != release.sampler:
        raise UserError(
            f"{name} counts {accountant.sampler} sampling, but the sampler is {release.sampler}; "
            f"choose {' or '.join(holding)}"
        )
    if name not in holding:
        raise UserError(
            f"{name} counts {' and '.join(accountant.neighbours)} neighbours, but the adjacency is "
            f"{release.adjacency}; choose {' or '.join(holding)}"
        )
    if kappa is not None and kappa < release.kappa:
        raise UserError(
            f"kappa is {kappa:g}, but one {release.record} can move a clipped mean of "
            f"{release.micro_batch_size:g} by {release.kappa:g} C ({release.adjacency}, "
            f"{release.sampler}): a clipped mean can be turned round; leave kappa out"
        )


def log_rho_of(composition: Composition) -> float:
    """log ρ of shuffled epochs: Σ count / (2 z²)."""
    logs = [
        math.log(event.count) + log_rho([event.effective_noise_multiplier])
        for event in composition.only("shuffle")
    ]
    if math.inf in logs:
        return math.inf
    return float(logsumexp(np.array(logs))) if logs else -math.inf


def renamed(bound: Bound, name: str, *, reasons: Tuple[str, ...]) -> Bound:
    """The same ε under another accountant's name, e.g. the paper's; with reasons if it is ∞."""
    return replace(bound, accountant=name, reasons=reasons if bound.epsilon.is_infinite else ())


@lru_cache(maxsize=256)
def _pld(composition: Composition, delta: float) -> Tuple[float, float]:
    """Both ends of the interval; several tables ask for the same one, which takes a second."""
    found = epsilon_poisson_pld(composition, delta=delta)
    return found.lower, found.upper
