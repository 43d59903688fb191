"""ε at a δ that is not the run's own, of a run that might have gone on as far as its budget."""

import csv

import pytest
from support.cli import printed, strictly
from support.made_ledgers import run_of

import edp_mx.api
from edp_mx.dp.accounting.decay import Decay
from edp_mx.dp.accounting.ledger_account import account_for
from edp_mx.dp.accounting.plan import Plan
from edp_mx.dp.accounting.release import Release
from edp_mx.runs.run_directory import RunDirectory

# 180 utterances in batches of 16 at z = 1: of 660 steps the budget lets 223 go, at δ = 1/360.
STEPS, RELEASED = 223, 10
EPSILONS = {1 / 360: 3.998, 1e-3: 4.441, 1e-4: 5.315, 1e-6: 6.745, 1e-9: 8.463}


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """A run that its score on validation ended after ten of its sixty epochs."""
    release = Release(
        num_workers=1,
        micro_batch_size=16,
        max_grad_norm=1.0,
        layer_scales=None,
        adjacency="replace_one",
        variant="calibrated",
        sampler="poisson",
        sample_rate=16 / 180,
        unit="utterance",
    )
    plan = Plan(release, 1.0, Decay(), 60, 1 / 360, steps_per_epoch=11, num_records=180,
                stops_early=True, max_epsilon=4.0)  # fmt: skip
    folder = tmp_path_factory.mktemp("early") / "stopped"
    return run_of(folder, plan, plan.entries()[:RELEASED])


@pytest.fixture(scope="module")
def true_epsilon():
    """By dp-accounting, of the steps that might have been released: noise 2 C z, one moves C."""
    dp_accounting = pytest.importorskip("dp_accounting")
    from dp_accounting.pld import privacy_loss_distribution

    composed = privacy_loss_distribution.from_gaussian_mechanism(
        2.0,
        sampling_prob=16 / 180,
        value_discretization_interval=1e-4,
        neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_ONE,
    ).self_compose(STEPS)
    return composed.get_epsilon_for_delta


@pytest.mark.parametrize("delta", EPSILONS)
def test_it_is_that_of_all_steps_that_it_might_have_released(stopped, true_epsilon, delta):
    """Printed was 4.517 at 1e-6: only the released steps had counted there."""
    spent = account_for(RunDirectory(stopped).ledger, delta=delta).spent
    assert spent.holds.epsilon.value == pytest.approx(true_epsilon(delta), rel=1e-4)
    assert spent.holds.epsilon.value == pytest.approx(EPSILONS[delta], abs=5e-4)
    assert sum(entry.event.count for entry in spent.entries) == STEPS


def test_every_command_says_so(stopped, capsys, tmp_path):
    """`account`, its table, its curve and its plan; `explain` and its attacker; Python."""
    epsilon = edp_mx.api.account(stopped, delta=1e-6).holds.epsilon.value
    assert epsilon == pytest.approx(EPSILONS[1e-6], abs=5e-4)
    curve = tmp_path / "curve.png"
    words = ("--delta", "1e-6", "--json", "--plot", str(curve))
    found = strictly(printed(capsys, "account", stopped, *words))
    first, *_ = found["accountants"]["holds"]
    stated = [first, found["holds"], found["planned"]["holds"]]
    assert [each["epsilon"] for each in stated] == [epsilon] * 3
    *_, last = csv.DictReader(curve.with_suffix(".csv").open(encoding="utf-8"))
    assert float(last["that_holds"]) == pytest.approx(epsilon, rel=1e-12)
    page = printed(capsys, "explain", stopped, "--delta", "1e-6")
    assert "epsilon = 6.74529 at delta = 1e-06" in page
