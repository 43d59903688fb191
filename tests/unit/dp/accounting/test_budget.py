"""What a run may still release, and what it might have released had it not been stopped."""

import dataclasses
import json
import math

import pytest
from support.gaussian import gaussian_delta
from support.made_ledgers import plan_with, poisson_plan, run_of, write_plan
from support.refusals import one_sentence

from edp_mx.dp.accounting.budget import (
    committed_entries,
    permitted_steps,
    refuse_blind_budget,
    refuse_unaffordable,
)
from edp_mx.dp.accounting.counting import count_what_holds
from edp_mx.dp.accounting.coverage import EARLY_STOP, PRIVATE_INPUTS
from edp_mx.dp.accounting.entries import Entry
from edp_mx.dp.accounting.guarantee import guarantee
from edp_mx.dp.accounting.ledger import LedgerFile
from edp_mx.dp.accounting.ledger_account import account_for
from edp_mx.errors import UserError
from edp_mx.reports.ledger_report import ledger_as_json
from edp_mx.reports.summary import compare
from edp_mx.runs.run_directory import RunDirectory

# n = 200, micro-batches of 8 on one worker, 40 epochs of z = 2 that a private score may end.
STOPS = plan_with(
    {"num_workers": 1},
    noise_multiplier=2.0,
    epochs=40,
    steps_per_epoch=25,
    num_records=200,
    delta=1 / 400,
    stops_early=True,
)


def rho_of(epochs, z=2.0):
    """Of shuffled epochs of the calibrated variant, in closed form."""
    return epochs / (2 * z * z)


def test_a_run_that_may_stop_early_counts_all_its_epochs(tmp_path):
    """Two epochs in the ledger; privacy.json, `account` and `compare` say what 40 cost."""
    run = RunDirectory(run_of(tmp_path / "run", STOPS, STOPS.entries()[:2]))
    account = account_for(run.ledger)
    spent = account.spent
    assert spent.holds.rho.value == pytest.approx(rho_of(40), rel=1e-12)
    mu = math.sqrt(2 * rho_of(40))
    assert gaussian_delta(spent.holds.epsilon.value, mu) == pytest.approx(1 / 400, rel=1e-6)
    assert spent.as_published.rho.value == pytest.approx(rho_of(40), rel=1e-12)
    assert EARLY_STOP in spent.not_covered
    assert len(account.ledger.entries) == 2 and "missing" in account.differences[0]

    from_plan = guarantee(STOPS, STOPS.entries()[:2])
    assert from_plan.holds == spent.holds == account.planned.holds
    as_json = ledger_as_json(account)
    assert as_json["holds"]["epsilon"] == spent.holds.epsilon.value
    assert as_json["accountants"]["holds"][0]["epsilon"] == spent.holds.epsilon.value
    run.write("privacy", from_plan.to_dict())
    run.write("results", {"test": {"ser": 0.5, "intent_accuracy": 0.5, "slot_f1": 0.5}})
    run.config.write_text("name: x\ndata: {corpus: atis}\nprivacy: {mechanism: edp_sgd}\n")
    assert f"{spent.holds.epsilon.value:.3g} " in compare([run])


def test_a_run_that_cannot_stop_early_counts_what_it_released(tmp_path):
    plan = dataclasses.replace(STOPS, stops_early=False)
    spent = account_for(write_plan(tmp_path / "l", plan, plan.entries()[:2])).spent
    assert spent.holds.rho.value == pytest.approx(rho_of(2), rel=1e-12)
    assert EARLY_STOP not in spent.not_covered


def test_a_run_that_the_program_ended_as_it_diverged_counts_all_its_epochs(tmp_path):
    """Nothing else in the ledger tells it from one that was merely interrupted."""
    plan = dataclasses.replace(STOPS, stops_early=False)
    path = write_plan(tmp_path / "l", plan, plan.entries()[:2])
    mark = LedgerFile(path, plan).mark()
    LedgerFile(path, plan).stop()
    for delta in (None, 1e-6):
        account = account_for(path, delta=delta)
        assert account.spent.holds.rho.value == pytest.approx(rho_of(40), rel=1e-12)
        assert account.spent.holds == account.planned.holds
    assert any("because it diverged" in text for text in account.differences)
    again = LedgerFile(path, plan, mark=mark)  # resumed from its checkpoint after epoch 1
    for entry in plan.entries()[1:]:
        again.append(entry)
    spent = account_for(path).spent  # it ended well: epoch 2 counts twice, and nothing is left
    assert spent.holds.rho.value == pytest.approx(rho_of(41), rel=1e-12)


@pytest.mark.parametrize("epochs", [1, 17, 39])
def test_a_budget_ends_what_might_have_been_released(epochs):
    """Of as many epochs as the budget would have let go, one by one."""
    costs = count_what_holds(STOPS, STOPS.entries()[:epochs]).epsilon.value
    plan = dataclasses.replace(STOPS, max_epsilon=costs * (1 + 1e-9))
    found = guarantee(plan, plan.entries()[:1])
    assert found.holds.rho.value == pytest.approx(rho_of(epochs), rel=1e-12)
    assert [entry.epoch for entry in found.entries] == list(range(epochs))
    less = guarantee(dataclasses.replace(plan, max_epsilon=costs * (1 - 1e-9)), ())
    assert less.holds.rho.value == pytest.approx(rho_of(epochs - 1), abs=1e-12)


def test_what_was_repeated_adds_to_what_was_committed():
    zero, one, two, *_ = STOPS.entries()
    found = guarantee(STOPS, (zero, one, one, two, two, two))
    assert found.holds.rho.value == pytest.approx(rho_of(43), rel=1e-12)
    limit = count_what_holds(STOPS, STOPS.entries()[:10]).epsilon.value * (1 + 1e-9)
    plan = dataclasses.replace(STOPS, max_epsilon=limit)
    found = guarantee(plan, (zero, one, one))  # of ten epochs three are spent, seven may follow
    assert [entry.epoch for entry in found.entries] == [0, 1, 1, 2, 3, 4, 5, 6, 7, 8]


@pytest.mark.parametrize("again", [(4, 5, 6), (0,), (0, 1, 2, 5, 6, 7, 8), (8, 8)])
def test_a_run_that_went_on_from_an_older_checkpoint_might_have_repeated_all_that_follows(again):
    """Of 40 epochs 9 were done, then some again: what follows the last may all have come again."""
    spent = tuple(STOPS.entry(epoch) for epoch in (*range(9), *again))
    found = guarantee(STOPS, spent)
    longest = (*range(9), *again, *range(again[-1] + 1, 40))
    assert [entry.epoch for entry in found.entries] == list(longest)
    assert found.holds.rho.value == pytest.approx(rho_of(len(longest)), rel=1e-12)


def test_the_rest_of_a_poisson_epoch_is_that_of_its_last_time():
    """Three epochs of 70 steps, then 30 and 10 steps of the second again: 30 are left of it."""
    plan = poisson_plan(stops_early=True)
    spent = (*plan.entries(), plan.entry(1, 30), plan.entry(1, 10))
    assert committed_entries(plan, spent) == (*spent, plan.entry(1, 30), plan.entry(2))
    whole = (*plan.entries(), plan.entry(1), plan.entry(1, 70))  # the last was repeated whole
    assert committed_entries(plan, whole) == (*whole, plan.entry(2))


@pytest.mark.parametrize("stretches", [
    [(0, 70), (0, 30)], [(0, 20), (20, 10), (20, 10)], [(0, 40), (0, 20), (20, 10)],
    [(0, 70), (29, 1)],
])  # fmt: skip
def test_a_ledger_that_says_where_its_stretches_begin_leaves_the_rest_of_the_epoch(stretches):
    """Each ends after 30 of the 70 steps of epoch 1, whatever was done of it before."""
    plan = poisson_plan(stops_early=True)
    done = [plan.entry(1, steps, first_step=first) for first, steps in stretches]
    spent = (plan.entry(0), *done)
    assert committed_entries(plan, spent) == (*spent, plan.entry(1, 40), plan.entry(2))
    read = tuple(Entry.from_dict(json.loads(json.dumps(entry.to_dict()))) for entry in spent)
    assert read == spent


REPEATED = ((0, 70), (1, 70), (2, 70), (2, 30))  # epochs and steps in a ledger


@pytest.mark.parametrize("spent", [REPEATED[:3], REPEATED])
@pytest.mark.parametrize("first_step", [0, 50])
def test_a_resumed_run_begins_each_later_epoch_anew_whatever_was_done_of_it(spent, first_step):
    """It goes on within epoch 1, of which the budget leaves all, and then 5 steps of epoch 2."""
    plan = poisson_plan()
    done = tuple(plan.entry(*of_epoch) for of_epoch in spent)
    rest = plan.entry(1, 70 - first_step)
    limit = count_what_holds(plan, (*done, rest, plan.entry(2, 5))).epsilon.value * (1 + 1e-7)
    plan = dataclasses.replace(plan, max_epsilon=limit)
    found = committed_entries(plan, done, first_epoch=1, first_step=first_step)
    assert found == (*done, rest, plan.entry(2, 5))


def test_a_resumed_run_may_have_room_for_a_part_of_its_first_epoch_only():
    plan = poisson_plan()
    done = tuple(plan.entry(*of_epoch) for of_epoch in REPEATED)
    limit = count_what_holds(plan, (*done, plan.entry(1, 9))).epsilon.value * (1 + 1e-7)
    plan = dataclasses.replace(plan, max_epsilon=limit)
    for first_step in (0, 50):
        found = committed_entries(plan, done, first_epoch=1, first_step=first_step)
        assert found == (*done, plan.entry(1, 9))


def test_alpha_is_committed_from_the_start():
    plan = dataclasses.replace(STOPS, scales_source="dp_release", scales_multiplier=1.0)
    known, scales = plan.with_layer_scales([1.0]), plan.entries()[:1]
    assert committed_entries(plan, ()) == plan.entries()
    for spent in (scales, plan.entries()[:3]):
        assert committed_entries(known, spent) == plan.entries()
    # killed after α's line in the ledger, before α itself: it is released again
    assert committed_entries(plan, scales) == (*scales, *plan.entries())
    assert guarantee(plan, ()).holds.rho.value == pytest.approx(rho_of(40) + 0.5, rel=1e-12)


def test_the_last_poisson_epoch_is_committed_in_part():
    plan = poisson_plan(stops_early=True)
    whole = count_what_holds(plan, (plan.entry(0), plan.entry(1, 33))).epsilon.value
    plan = dataclasses.replace(plan, max_epsilon=whole * (1 + 1e-7))
    for spent in ((), (plan.entry(0),), (plan.entry(0), plan.entry(1, 33))):
        found = committed_entries(plan, spent)
        assert found == (plan.entry(0), plan.entry(1, 33))
        assert guarantee(plan, spent).holds.epsilon.value <= plan.max_epsilon
    assert permitted_steps(plan, (plan.entry(0),), 1) == 33
    assert permitted_steps(plan, (plan.entry(0), plan.entry(1, 33)), 2) == 0
    assert committed_entries(plan, plan.entries()) == plan.entries()  # though over the budget
    unlimited = dataclasses.replace(plan, max_epsilon=None)
    assert committed_entries(unlimited, (plan.entry(0),)) == plan.entries()


def test_a_shuffled_epoch_fits_whole_or_not_at_all():
    one = count_what_holds(STOPS, STOPS.entries()[:1]).epsilon.value
    plan = dataclasses.replace(STOPS, max_epsilon=1.01 * one)
    assert permitted_steps(plan, (), 0) == 25
    assert permitted_steps(plan, plan.entries()[:1], 1) == 0
    assert permitted_steps(STOPS, STOPS.entries(), 0) == 25  # without a budget all


@pytest.mark.parametrize("key", ["privacy.max_epsilon", "privacy.target_epsilon"])
@pytest.mark.parametrize("name", sorted(PRIVATE_INPUTS))
def test_a_budget_that_cannot_see_why_epsilon_is_infinite_is_refused(name, key):
    plan = plan_with(private_inputs=[name])
    text = one_sentence(f"^{key}: epsilon is infinite", refuse_blind_budget, plan, key)
    assert PRIVATE_INPUTS[name].reason in text and f"privacy.assume_public: [{name}]" in text
    others = [other for other in PRIVATE_INPUTS if other != name]
    one_sentence(key, refuse_blind_budget, dataclasses.replace(plan, assumed_public=others), key)
    granted = dataclasses.replace(plan, assumed_public=[name])
    refuse_blind_budget(granted, key)
    assert "privacy.assume_public says so" in guarantee(granted).describe()


def test_a_budget_with_a_known_seed_is_refused():
    with pytest.raises(UserError, match="insecure_fixed_seed"):
        refuse_blind_budget(plan_with(seed_is_fixed=True), "privacy.max_epsilon")
    refuse_blind_budget(plan_with(), "privacy.max_epsilon")


@pytest.mark.parametrize("made", [plan_with, poisson_plan])
def test_a_budget_without_room_for_a_step_is_refused_before_anything_is_released(made):
    plan = made(noise_multiplier=0.1, max_epsilon=0.01)
    one_sentence("0.01 leaves no room for a step: the first epoch costs", refuse_unaffordable, plan)
    cost = count_what_holds(plan, [plan.entry(0)]).epsilon.value
    refuse_unaffordable(dataclasses.replace(plan, max_epsilon=cost * 1.001))


def test_alpha_is_paid_for_before_it_is_released():
    """z_a = 1 alone costs more than 0.5; and what was spent on it before is spent."""
    plan = plan_with(scales_source="dp_release", scales_multiplier=1.0, max_epsilon=0.5)
    words = "0.5 is less than the .* that the layer scales cost"
    assert "nothing was released" in one_sentence(words, refuse_unaffordable, plan)
    (alpha,) = plan.scales_entries()
    costs = [count_what_holds(plan, n * [alpha]).epsilon.value for n in (1, 2)]
    enough = dataclasses.replace(plan, max_epsilon=0.5 * sum(costs))
    refuse_unaffordable(enough)
    with pytest.raises(UserError, match="layer scales cost"):  # a crash came before α was kept
        refuse_unaffordable(enough, (alpha,))
    refuse_unaffordable(dataclasses.replace(plan, max_epsilon=None))
    blind = dataclasses.replace(enough, private_inputs=["vocabulary"])
    one_sentence("privacy.max_epsilon: epsilon is infinite", refuse_unaffordable, blind)
