"""α as it is found (layer_scales_unit: norm): what the published noise is worth then."""

from dataclasses import replace

import numpy as np
import pytest
from support.gaussian import gaussian_epsilon
from support.releases import release_with

from edp_mx.dp.accounting.coverage import UNKNOWN_SCALES
from edp_mx.dp.accounting.decay import Decay
from edp_mx.dp.accounting.guarantee import guarantee
from edp_mx.dp.accounting.ledger import LedgerFile
from edp_mx.dp.accounting.ledger_account import account_for
from edp_mx.dp.accounting.plan import Plan
from edp_mx.dp.accounting.target import calibrated
from edp_mx.errors import UserError

NORMS = (0.61, 8.75, 2.5)
Z, EPOCHS, DELTA = 0.5, 20, 5e-4


def plan_for(*, variant="published", unit="norm", scales=None, **changes):
    release = release_with(num_workers=8, variant=variant, layer_scales=scales)
    values = {"scales_source": "public_batch", "scales_unit": unit, **changes}
    return Plan(release, Z, Decay(), EPOCHS, DELTA, num_records=1000, **values)


@pytest.mark.parametrize("factor", [1.0, 10.0, 100.0])
def test_the_published_count_is_blind_to_the_unit_of_the_loss_and_the_true_one_is_not(factor):
    """κ = 2, N = 8: a record moves the aggregate by 2 C max α / N, the noise is C z / N^1.5."""
    plan = plan_for(scales=[factor * scale for scale in NORMS])
    found = guarantee(plan)
    moved, noise = 2 * factor * max(NORMS) / 8, Z / 8**1.5
    mu = EPOCHS**0.5 * moved / noise
    assert found.holds.epsilon.value == pytest.approx(gaussian_epsilon(DELTA, mu), rel=1e-6)
    rho = EPOCHS / (2 * Z**2)  # as the paper counts it, whatever α
    published = rho + 2 * (rho * np.log(1 / DELTA)) ** 0.5
    assert found.as_published.epsilon.value == pytest.approx(published, rel=1e-12)


@pytest.mark.parametrize("scales", [NORMS, (0.02, 0.01, 0.04)])
def test_calibrated_noise_grows_and_shrinks_with_the_scales(scales):
    plan = plan_for(variant="calibrated")
    known = plan.with_layer_scales(scales)
    expected = gaussian_epsilon(DELTA, EPOCHS**0.5 / Z)
    for each in (plan, known):
        assert guarantee(each).holds.epsilon.value == pytest.approx(expected, rel=1e-9)
    stddevs = known.release.worker_noise_stddev(Z)
    np.testing.assert_allclose(stddevs, 2 * Z / 8**0.5 * np.array(scales), rtol=1e-12)


def test_until_the_scales_are_known_nothing_is_claimed_to_hold(tmp_path):
    plan = plan_for()
    ahead = guarantee(plan)
    assert ahead.holds.reasons == (UNKNOWN_SCALES,) and ahead.holds.epsilon.is_infinite
    assert not ahead.as_published.epsilon.is_infinite and ahead.effective_noise_multipliers == ()
    file = LedgerFile(tmp_path / "ledger.jsonl", plan)
    assert account_for(tmp_path / "ledger.jsonl").planned.holds.reasons == (UNKNOWN_SCALES,)
    file.complete(NORMS)
    known = plan.with_layer_scales(NORMS)
    for entry in known.entries():
        file.append(entry)
    account = account_for(tmp_path / "ledger.jsonl")
    assert account.differences == () and account.plan == known
    expected = gaussian_epsilon(DELTA, EPOCHS**0.5 * 2 * 8.75 * 8**0.5 / Z)
    assert account.spent.holds.epsilon.value == pytest.approx(expected, rel=1e-6)


def test_a_target_cannot_be_found_before_the_scales_are_known():
    from edp_mx.dp.accounting.budget import refuse_blind_budget

    with pytest.raises(UserError, match="layer_scales_unit: largest"):
        refuse_blind_budget(plan_for(), "privacy.target_epsilon")
    known = plan_for(scales=NORMS)
    refuse_blind_budget(known, "privacy.target_epsilon")
    z = calibrated(known, target_epsilon=3.0).noise_multiplier
    # z / (κ max α √N) is what a plan with κ C noise needs by itself
    plain = calibrated(plan_for(variant="calibrated"), target_epsilon=3.0).noise_multiplier
    assert z == pytest.approx(plain * 2 * 8.75 * 8**0.5, rel=1e-6)


def test_ones_are_known_from_the_start():
    assert not plan_for(scales_source="ones").awaits_scales


def test_plans_that_name_no_unit_have_scales_of_at_most_one():
    old = plan_for(unit="largest").to_dict()
    del old["scales_unit"]
    plan = Plan.from_dict(old)
    assert plan.scales_unit == "largest" and not plan.awaits_scales
    with pytest.raises(ValueError, match="the largest layer scale is 8.75"):
        plan.with_layer_scales(NORMS)
    assert replace(plan, scales_unit="norm").with_layer_scales(NORMS).release.layer_scales == NORMS
