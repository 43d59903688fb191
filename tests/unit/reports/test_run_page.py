"""The page of a run says what its files say."""

import json

import pytest
from support.made_ledgers import plan_with, write_plan

from edp_mx.accounting.guarantee import guarantee
from edp_mx.reports.run_page import write_run_page
from edp_mx.runs.run_directory import RunDirectory

ROW = {"epoch": 1, "loss": 1.5, "ser": 40.0, "intent_accuracy": 71.0, "slot_f1": 60.0,
       "seconds": 20.0, "epsilon_as_published": 3.0, "epsilon_holds": 2.0}  # fmt: skip


@pytest.mark.parametrize("private", [(), ("vocabulary",)])
def test_the_page_has_scores_baseline_both_epsilons_and_what_they_leave_open(tmp_path, private):
    run, plan = RunDirectory(tmp_path / "<mine>"), plan_with(private_inputs=private)
    run.create("run", "name: run\ntraining: {epochs: 4}\n")
    write_plan(run.ledger, plan)
    told = guarantee(plan)
    run.write("privacy", told.to_dict())
    test = {"ser": 0.1234, "intent_accuracy": 0.5, "slot_f1": 0.75}
    baseline = {"intent": "call", "ser": 0.9, "intent_accuracy": 0.6}
    run.write("results", {"test": test, "baseline": baseline})
    run.metrics.write_text(json.dumps(ROW) + "\n" + json.dumps({**ROW, "epoch": 2}) + "\n")
    write_run_page(run)
    page = (run.path / "report.html").read_text()
    assert "<h1>&lt;mine&gt;</h1>" in page and "<mine>" not in page
    for words in ("12.34", "75.00", "90.00", "nothing was learned", "training.epochs", "<svg"):
        assert words in page
    for bound in (told.as_published, told.holds, told.holds_if):
        assert bound.epsilon.in_words() in page
    assert ("were read off the private training part" in page) == bool(private)
    assert "other models trained on the same data" in page
