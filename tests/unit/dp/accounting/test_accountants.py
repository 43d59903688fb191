"""Each accountant counts what it may, and agrees with those of others where they are installed."""

import math
from dataclasses import replace

import pytest
from support.releases import release_with

from edp_mx.dp.accounting import accountants
from edp_mx.dp.accounting.accountants import ACCOUNTANTS, Accountant
from edp_mx.dp.accounting.decay import Decay
from edp_mx.dp.accounting.events import Composition, Event
from edp_mx.dp.accounting.guarantee import guarantee
from edp_mx.dp.accounting.plan import Plan
from edp_mx.dp.accounting.pld.interval import epsilon_poisson_pld
from edp_mx.dp.accounting.target import calibrated
from edp_mx.dp.accounting.tradeoff import limits_of
from edp_mx.reports.plan_report import plan_as_json, plan_as_lines


def release_of(sampler, adjacency):
    return release_with(num_workers=2, micro_batch_size=4, sampler=sampler, adjacency=adjacency)


@pytest.mark.parametrize("holds", [True, False])
def test_what_is_registered_is_in_the_tables(monkeypatch, holds):
    """One line in the registry is all that an accountant of one's own takes."""

    def twice_as_much(composition, delta):
        logs = ACCOUNTANTS["rf_exact"].logs(composition, delta)
        return {**logs, "epsilon": logs["epsilon"] + math.log(2)}

    added = Accountant("doubled", "shuffle", "exact", twice_as_much, is_bound=holds)
    monkeypatch.setitem(ACCOUNTANTS, added.name, added)
    plan = Plan(release_of("shuffle", "zero_out"), 2.0, Decay(), 3, delta=1e-5)
    report = guarantee(plan)
    exact, twice = report.holds.epsilon.value, {}
    for side in ("as_published", "holds"):
        rows = {row["accountant"]: row for row in plan_as_json(report)["accountants"][side]}
        twice[side] = rows["doubled"]
        assert list(rows) == ["rf_exact", "rf_renyi", "rf_zcdp", "doubled"]
        assert rows["doubled"]["is_bound"] is holds
    assert twice["holds"]["epsilon"] == pytest.approx(2 * exact, rel=1e-12)
    (line,) = [line for line in plan_as_lines(report) if line.startswith("| doubled")]
    assert ("yes" if holds else "NOT a bound") in line
    assert report.holds.accountant == "rf_exact"  # the first is the one that is claimed


def test_one_that_is_claimed_is_calibrated_for_and_explained_without_another_line(monkeypatch):
    """It claims no limits of a Gaussian."""

    def twice_as_much(composition, delta):
        logs = ACCOUNTANTS["rf_exact"].logs(composition, delta)
        return {"epsilon": logs["epsilon"] + math.log(2)}

    added, others = Accountant("doubled", "shuffle", "twice", twice_as_much), dict(ACCOUNTANTS)
    plan = Plan(release_of("shuffle", "zero_out"), 2.0, Decay(), 3, delta=1e-5)
    half = calibrated(plan, target_epsilon=2.0)
    exact = guarantee(half)
    assert "one Gaussian" in limits_of(exact.holds, exact).source
    monkeypatch.setattr(accountants, "ACCOUNTANTS", {"doubled": added, **others})
    found = calibrated(plan, target_epsilon=4.0)
    assert found.noise_multiplier == pytest.approx(half.noise_multiplier, rel=1e-5)
    said = guarantee(replace(found, num_records=99))  # another object: what was counted is kept
    assert said.holds.accountant == "doubled" and 3.999 < said.holds.epsilon.value <= 4
    assert "values of delta" in limits_of(said.holds, said).source


CONSTANT = ((0.02, 0.8, 500),)
FALLING = tuple((0.05, 1.2 * 0.8**t, 20) for t in range(3))


def ours(steps, delta, neighbours="zero_out"):
    events = [Event("poisson", z, count, q) for q, z, count in steps]
    return epsilon_poisson_pld(Composition(neighbours, events), delta=delta)


def theirs(steps, *, spacing):
    """dp-accounting; its adding and removing is our zero-out, with the multiplier as it is."""
    pytest.importorskip("dp_accounting")
    from dp_accounting.pld import privacy_loss_distribution

    total = None
    for q, z, count in steps:
        found = privacy_loss_distribution.from_gaussian_mechanism(
            z, sampling_prob=q, value_discretization_interval=spacing
        ).self_compose(count)
        total = found if total is None else total.compose(found)
    return total


@pytest.mark.parametrize("steps", [CONSTANT, FALLING], ids=["constant", "falling"])
def test_pld_is_that_of_dp_accounting(steps):
    """On their lattice of 1e-4 they are some 4e-7 above the truth."""
    peer = theirs(steps, spacing=1e-4)
    for delta in (1e-3, 1e-6):
        expected = peer.get_epsilon_for_delta(delta)
        assert ours(steps, delta).estimate == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("steps", [CONSTANT, FALLING], ids=["constant", "falling"])
def test_pld_is_that_of_prv_accountant(steps):
    prv = pytest.importorskip("prv_accountant")
    mechanisms = [
        prv.PoissonSubsampledGaussianMechanism(sampling_probability=q, noise_multiplier=z)
        for q, z, _ in steps
    ]
    counts = [count for _, _, count in steps]
    accountant = prv.PRVAccountant(
        mechanisms, max_self_compositions=counts, eps_error=0.03, delta_error=1e-10
    )
    lower, estimate, upper = accountant.compute_epsilon(delta=1e-5, num_self_compositions=counts)
    found = ours(steps, 1e-5)
    assert lower <= found.lower <= found.upper <= upper
    assert found.estimate == pytest.approx(estimate, rel=1e-5)
