"""The page of a run says what its files say."""

import html
import json
import re

import pytest
from support.made_ledgers import plan_with, write_plan
from support.membership import made_scores
from support.records import changed, record_of

from edp_mx.attacks.directory import write_outcome
from edp_mx.attacks.membership.thresholds import threshold_attacks
from edp_mx.dp.accounting.guarantee import guarantee
from edp_mx.reports.panels import Picture
from edp_mx.reports.report_parts import MOST_OPEN, Part, as_html
from edp_mx.reports.run_page import write_run_page
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.files import write_json

ROW = {"epoch": 1, "loss": 1.5, "ser": 40.0, "intent_accuracy": 71.0, "slot_f1": 60.0,
       "seconds": 20.0, "epsilon_as_published": 3.0, "epsilon_holds": 2.0}  # fmt: skip


def made(tmp_path, private=()):
    """A finished run, and what it promises."""
    run, plan = RunDirectory(tmp_path / "<mine>"), plan_with(private_inputs=private)
    run.create("run", "name: run\ntraining: {epochs: 4}\n")
    write_plan(run.ledger, plan)
    told = guarantee(plan)
    run.write("privacy", told.to_dict())
    test = {"ser": 0.1234, "intent_accuracy": 0.5, "slot_f1": 0.75}
    baseline = {"intent": "call", "ser": 0.9, "intent_accuracy": 0.6, "slot_f1": 0.0}
    run.write("results", {"test": test, "baseline": baseline})
    run.metrics.write_text(json.dumps(ROW) + "\n" + json.dumps({**ROW, "epoch": 2}) + "\n")
    return run, told


@pytest.mark.parametrize("private", [(), ("vocabulary",)])
def test_the_page_has_scores_baseline_both_epsilons_and_what_they_leave_open(tmp_path, private):
    run, told = made(tmp_path, private)
    write_run_page(run)
    page = (run.path / "report.html").read_text()
    assert "<h1>&lt;mine&gt;</h1>" in page and "<mine>" not in page
    for words in ("12.34", "75.00", "90.00", "nothing was learned", "training.epochs", "<svg"):
        assert words in page
    for bound in (told.as_published, told.holds, told.holds_if):
        assert bound.epsilon.in_words() in page
    assert ("were read off the private training part" in page) == bool(private)
    assert "other models trained on the same data" in page


def test_attacks_and_the_run_without_privacy_stand_on_the_page(tmp_path, generator):
    run, _ = made(tmp_path)
    write_run_page(run)
    page = (run.path / "report.html").read_text()
    assert "Attacks" not in page and "without privacy (free)" not in page
    attack = f"edp-mx attack '{run.path}'"  # in the head, and among the commands
    assert html.unescape(page).count(attack) == 2
    scores = made_scores(generator, 60, gap=1.5)
    found = write_outcome(run, "threshold", threshold_attacks(scores), scores, facts={})
    write_json(run.path / "attack-lira" / "attack.json", {"attack": "lira"})  # damaged
    digits = ["1"] * 7
    canary = {"repeats": 10, "tokens": digits, "loss": 1.0, "rank": 1, "candidates": 1000,
              "by_rank": 9.97, "by_fit": 11.5}  # fmt: skip
    write_json(run.path / "attack-canaries" / "exposure.json", {"canaries": [canary]})
    other = RunDirectory(run.path.parent / "free")
    other.path.mkdir()
    other.config.write_text("name: free\n")
    for each, mechanism in ((run, "edp_sgd"), (other, "none")):
        each.write("environment", {"fingerprints": {"test": {"key": "k", "digest": "same"}}})
        each.write("record", changed(record_of("mine", "clc", mechanism=mechanism), epochs=4))
    scored = {"ser": 0.0456, "intent_accuracy": 0.98, "slot_f1": 0.95}
    other.write("results", {"test": scored})
    write_run_page(run)
    page = (run.path / "report.html").read_text()
    auc = 100 * found["results"][0]["auc"]["value"]
    assert f"members from others in {auc:.0f} of 100 pairs" in page and f"{auc:.1f} %" in page
    assert "attack-lira cannot be shown" in page
    assert "10 times" in page and "9.97" in page
    assert "without privacy (free)" in page and "4.56" in page
    other.write("record", changed(record_of("mine", "bert", mechanism="none"), epochs=4))
    write_run_page(run)
    page = (run.path / "report.html").read_text()
    assert "without privacy (free, another model: BERT)" in page


def test_of_many_pictures_each_but_the_first_is_folded():
    many = [Picture(f"place {i}", ["<svg></svg>"]) for i in range(MOST_OPEN + 1)]
    page = as_html("title", "", [Part("many", pictures=many), Part("few", pictures=many[1:])])
    folded = re.findall("<details( open)?><summary>(.*?)</summary>", page)
    assert folded == [(" open" * (i == 0), each.caption) for i, each in enumerate(many)]
    assert page.count("<figure>") == MOST_OPEN and page.count("<svg>") == 2 * MOST_OPEN + 1
