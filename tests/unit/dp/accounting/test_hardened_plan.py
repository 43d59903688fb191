"""Hardened noise in the plan: said everywhere, and no guarantee where float32 lacks its grid."""

import dataclasses
import math

import numpy as np
import pytest
from support.made_ledgers import plan_with, write_plan
from support.refusals import one_sentence

from edp_mx.dp.accounting.counting import count_what_holds, least_noise_multiplier
from edp_mx.dp.accounting.coverage import COARSE_GRID, FLOATING_POINT, GRID
from edp_mx.dp.accounting.guarantee import guarantee
from edp_mx.dp.accounting.ledger_account import account_for
from edp_mx.dp.accounting.plan import Plan
from edp_mx.dp.privacy.grid_gaussian import grid_of
from edp_mx.reports.explanation import explain


def plan_of(gaussian, **changes):
    return dataclasses.replace(plan_with(**changes), gaussian=gaussian)


@pytest.mark.parametrize("gaussian", ["plain", "hardened"])
def test_plan_ledger_privacy_and_explanation_say_which_noise_it_is(tmp_path, gaussian):
    plan = plan_of(gaussian)
    assert Plan.from_dict(plan.to_dict()) == plan
    write_plan(tmp_path / "ledger.jsonl", plan, plan.entries())
    assert f'"gaussian": "{gaussian}"' in (tmp_path / "ledger.jsonl").read_text().splitlines()[0]
    account = account_for(tmp_path / "ledger.jsonl")
    assert account.plan.gaussian == gaussian
    assert f"{gaussian} noise" in account.spent.describe()
    assert account.spent.to_dict()["gaussian"] == gaussian
    said = " ".join(explain(account, name="run").split())
    assert f"The noise was drawn {gaussian}" in said
    open_, closed = (FLOATING_POINT, GRID) if gaussian == "plain" else (GRID, FLOATING_POINT)
    assert open_ in account.spent.not_covered and closed not in account.spent.not_covered
    assert " ".join(open_.split()) in said


def test_it_is_the_same_epsilon_and_no_other_kind_is_known():
    plain, hardened = (guarantee(plan_of(gaussian)) for gaussian in ("plain", "hardened"))
    assert plain.holds == hardened.holds
    one_sentence("gaussian", plan_of, "discrete")
    old = plan_with().to_dict()
    del old["gaussian"]  # a ledger of an older version
    assert Plan.from_dict(old).gaussian == "plain"


@pytest.mark.parametrize("workers", [1, 8, 1000])
def test_noise_whose_grid_float32_cannot_hold_is_no_guarantee(workers):
    """At the least z₀ the largest sum over the workers has no more steps than float32 counts."""
    release = dataclasses.replace(plan_with().release, num_workers=workers)
    plan = dataclasses.replace(plan_of("hardened"), release=release)
    least = least_noise_multiplier(plan)
    for factor, reasons in ((1.0, ()), (0.999, (COARSE_GRID,))):
        small = plan.with_noise_multiplier(least * factor)
        assert count_what_holds(small, small.entries()).reasons == reasons
    assert least > least_noise_multiplier(dataclasses.replace(plan, gaussian="plain"))
    last = plan.with_noise_multiplier(least).noise_multiplier_at(plan.epochs - 1)
    (stddev,) = set(release.with_layer_scales([1.0]).worker_noise_stddev(last))
    largest = workers * (release.max_grad_norm + 13.4 * stddev)
    assert largest / grid_of(stddev) <= 2**24
    assert np.float32(largest // grid_of(stddev)) == largest // grid_of(stddev)


def test_so_many_workers_that_no_noise_is_large_enough():
    release = dataclasses.replace(plan_with().release, num_workers=3000)
    plan = dataclasses.replace(plan_of("hardened"), release=release)
    assert math.isinf(least_noise_multiplier(plan))
    assert count_what_holds(plan, plan.entries()).reasons == (COARSE_GRID,)
