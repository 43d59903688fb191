"""A claim by a named accountant: allowed exactly where that accountant counts what was released."""

from __future__ import annotations

import json
import math

import pytest
from support.cli import printed
from support.releases import release_with

from edp_mx.accounting.accountants import ACCOUNTANTS, Accountant, check_claim, count_with
from edp_mx.accounting.choices import ADJACENCIES, SAMPLERS
from edp_mx.accounting.decay import Decay
from edp_mx.accounting.events import Composition, Event
from edp_mx.accounting.plan import Plan
from edp_mx.errors import UserError
from edp_mx.reports.plan_report import PlanReport


def release_of(sampler, adjacency):
    return release_with(num_workers=2, micro_batch_size=4, sampler=sampler, adjacency=adjacency)


@pytest.mark.parametrize("accountant", ACCOUNTANTS)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_allowed_where_it_counts_and_is_a_bound(sampler, adjacency, accountant):
    release = release_of(sampler, adjacency)
    rate = 0.1 if sampler == "poisson" else 1.0
    steps = Composition(release.neighbours, [Event(sampler, 2.0, 3, rate)])
    try:
        count_with(accountant, steps, delta=1e-5)
        is_sound = ACCOUNTANTS[accountant].is_bound
    except UserError:
        is_sound = False
    if is_sound:
        check_claim(accountant, release)
        return
    with pytest.raises(UserError) as caught:
        check_claim(accountant, release)
    assert "\n" not in str(caught.value)


def test_the_refusal_names_what_holds():
    cases = {
        ("rf_exact", "poisson", "replace_one"): "choose poisson_pld$",
        ("rf_exact", "poisson", "zero_out"): "choose poisson_pld or poisson_rdp$",
        ("poisson_rdp", "poisson", "replace_one"): "adjacency is replace_one; choose poisson_pld$",
        ("poisson_rdp", "shuffle", "zero_out"): "choose rf_exact or rf_renyi or rf_zcdp$",
    }
    for (accountant, sampler, adjacency), words in cases.items():
        with pytest.raises(UserError, match=words):
            check_claim(accountant, release_of(sampler, adjacency))


@pytest.mark.parametrize("holds", [True, False])
def test_what_is_registered_is_in_the_tables_and_can_be_named(monkeypatch, capsys, holds):
    """One line in the registry is all that an accountant of one's own takes."""

    def twice_as_much(composition, delta):
        logs = ACCOUNTANTS["rf_exact"].logs(composition, delta)
        return {**logs, "epsilon": logs["epsilon"] + math.log(2)}

    added = Accountant("doubled", "shuffle", "exact", twice_as_much, is_bound=holds)
    monkeypatch.setitem(ACCOUNTANTS, added.name, added)
    plan = Plan(release_of("shuffle", "zero_out"), 2.0, Decay(), 3, delta=1e-5)
    report = PlanReport.of(plan)
    exact, twice = report.holds.epsilon.value, {}
    for side in ("as_published", "holds"):
        rows = {row["accountant"]: row for row in report.to_dict()["accountants"][side]}
        twice[side] = rows["doubled"]
        assert list(rows) == ["rf_exact", "rf_renyi", "rf_zcdp", "doubled"]
        assert rows["doubled"]["is_bound"] is holds
    assert twice["holds"]["epsilon"] == pytest.approx(2 * exact, rel=1e-12)
    (line,) = [line for line in report.lines() if line.startswith("| doubled")]
    assert ("yes" if holds else "NOT a bound") in line
    assert report.holds.accountant == "rf_exact"  # the first is the one that is claimed

    options = "account --noise-multiplier 2 --epochs 3 --delta 1e-5 --micro-batch-size 4 --json"
    options += " --workers 2 --adjacency zero-out --variant calibrated --accountant doubled"
    if not holds:
        with pytest.raises(UserError, match="doubled is not a bound"):
            printed(capsys, *options.split())
        return
    stated = json.loads(printed(capsys, *options.split()))["stated"]
    assert stated["accountant"] == "doubled" and stated["is_bound"] is True
    assert stated["epsilon"] == pytest.approx(2 * exact, rel=1e-12)
    with pytest.raises(UserError, match="choose rf_exact or rf_renyi or rf_zcdp or doubled"):
        check_claim("poisson_pld", plan.release)
