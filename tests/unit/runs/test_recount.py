"""The privacy of a finished run is what its ledger adds up to, whatever lies beside it."""

import json

import pytest
from support.commands import edp_mx
from support.made_ledgers import plan_with, poisson_plan, run_of
from support.refusals import one_sentence

from edp_mx.dp.accounting.ledger import read_ledger
from edp_mx.runs.file_types import Privacy
from edp_mx.runs.recount import privacy_of, recount
from edp_mx.runs.run_directory import RunDirectory


def made_run(folder, plan, *, train=None):
    """A run directory with a ledger, its privacy.json, and a split."""
    run = RunDirectory(run_of(folder, plan))
    end = read_ledger(run.ledger).chain.end
    run.write("privacy", {**recount(run).spent.to_dict(), "ledger_end": end})
    run.write("split", {"train": [f"u/{i}" for i in range(train or plan.num_records)]})
    return run


@pytest.mark.parametrize("plan", [plan_with({"unit": "utterance"}), poisson_plan()])
def test_what_agrees_is_returned_without_a_word(tmp_path, plan):
    run, notes = made_run(tmp_path / "run", plan), []
    assert privacy_of(run, notes) == run.load(Privacy) and notes == []


@pytest.mark.parametrize("key", ["as_published", "holds"])
def test_a_smaller_epsilon_in_privacy_json_is_not_believed(tmp_path, key):
    run, notes = made_run(tmp_path / "run", plan_with({"unit": "utterance"})), []
    stated = run.read("privacy")
    true = stated[key]["epsilon"]
    stated[key]["epsilon"] = 0.5
    run.write("privacy", stated)
    assert getattr(privacy_of(run, notes), key).epsilon == true
    (note,) = notes
    assert "privacy.json states ε = 0.5" in note and f"{true:.6g}" in note


def test_without_its_ledger_a_private_run_has_no_epsilon(tmp_path):
    run = made_run(tmp_path / "run", plan_with({"unit": "utterance"}))
    run.ledger.unlink()
    for claim in ({}, {"mechanism": "none"}):  # also where the file says that there was none
        run.write("privacy", {**run.read("privacy"), **claim})
        one_sentence("nobody knows what the run has spent", privacy_of, run, [])


def test_another_number_of_utterances_than_the_split_has_is_refused(tmp_path):
    run = made_run(tmp_path / "run", plan_with({"unit": "utterance"}), train=4000)
    one_sentence("counts 4,478 utterances, but split.json has 4,000", recount, run)


def test_of_users_there_may_be_fewer_than_utterances(tmp_path):
    plan = poisson_plan({"unit": "user", "adjacency": "zero_out"}, num_records=50, delta=0.01)
    assert recount(made_run(tmp_path / "run", plan, train=60)).plan.num_records == 50
    one_sentence("counts 50 users", recount, made_run(tmp_path / "other", plan, train=40))


def test_no_way_of_asking_prints_the_smaller_epsilon(tmp_path):
    run = made_run(tmp_path / "run", plan_with({"unit": "utterance"}))
    stated = run.read("privacy")
    stated["holds"] = {**stated["holds"], "epsilon": 0.25}
    run.write("privacy", stated)
    run.write("results", {"test": {"ser": 0.1, "intent_accuracy": 0.9, "slot_f1": 0.8}})
    run.config.write_text("name: mine\n")
    compared = edp_mx("compare", run.path).stdout
    assert compared.count("0.25") == compared.count("states ε = 0.25 that holds") == 1
    assert "0.25" not in edp_mx("explain", run.path).stdout
    assert json.loads(edp_mx("account", run.path, "--json").stdout)["holds"]["epsilon"] > 0.7
