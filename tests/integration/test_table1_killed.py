"""Table 1 through the command line: killed twice in the middle, gone on with, no run repeated."""

import json
import os
import shutil
import signal

import pytest
from support.commands import CONFIGS, TINY, edp_mx, lines_of, start, wait_for
from support.records import lines_in

from edp_mx.runs.record import run_id


@pytest.mark.slow  # a sweep's, by the same machinery, is in the default suite
def test_a_killed_table_goes_on_without_repeating_a_run(tmp_path):
    runs, records, page = tmp_path / "runs", tmp_path / "records", tmp_path / "table1.md"
    journal = runs / "journal.jsonl"
    command = ["experiments.table1", "--corpora", "health", "--models", "clc", "--methods", "sgd",
               "edp_none", "edp_linear_calibrated", "dp_sgd", "--runs", runs, "--records", records,
               "--configs", CONFIGS, "--out", page, "--wide", "--set", "data.size=300",
               "training.epochs=1", *TINY]  # fmt: skip

    for lines in (3, 6):  # begun, finished, begun | begun, finished, begun
        process = start(*command)
        wait_for(lambda lines=lines: lines_of(journal) >= lines, process)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
    assert len(lines_in(records)[0]) == 2

    said = edp_mx(*command)
    assert said.stdout == page.read_text()
    events = [json.loads(line) for line in journal.read_text().splitlines()]
    assert len([e for e in events if e["event"] == "finished"]) == 3
    assert len({e["hash"] for e in events if e["event"] == "finished"}) == 3
    rows = {
        line.split("|")[2].strip(): line for line in said.stdout.splitlines() if "| Health" in line
    }
    assert list(rows) == ["SGD", "eDP-SGD, no decay, the paper's ε",
                          "eDP-SGD, linear decay, calibrated", "DP-SGD at ε = 8"]  # fmt: skip
    assert [row.count("–") > 6 for row in rows.values()] == [False, False, False, True]
    assert "[-1.2]" in rows["eDP-SGD, no decay, the paper's ε"]  # the paper's ΔSER
    assert "needs missing files (model.start_from: runs/warm_for_health)" in said.stdout
    kept = list(map(json.loads, lines_in(records)[0]))
    assert {each["name"] for each in kept} == {
        "health_clc_sgd", "health_clc_edp_none", "health_clc_edp_linear_calibrated"}  # fmt: skip
    assert str(tmp_path) not in said.stdout

    again = edp_mx(*command)
    assert "0 of them to be trained" in again.stderr and again.stdout == said.stdout
    dry = edp_mx(*command, "--dry-run", "--seeds", "0", "1").stdout
    assert "health_clc (sgd, edp_none, edp_linear_calibrated), seed 1: not trained yet" in dry

    before = {run_id(each) for each in kept}
    shutil.rmtree(runs)
    attacks = [*command, "--attacks"]
    attacked = edp_mx(*attacks, "--retrain")
    assert "4 of them to be trained" in attacked.stderr  # and the shadow
    made, of_attacks = lines_in(records)
    ids = {run_id(json.loads(line)) for line in made}
    # Of so short a training without noise the second may be the first again, to the last digit.
    assert before < ids and len(made) == len(ids) in (6, 7)
    assert [json.loads(line)["attack"] for line in of_attacks].count("shadow") == 3
    assert "0 of them to be trained" in edp_mx(*attacks, "--retrain").stderr

    html = tmp_path / "report.html"
    edp_mx("experiments.report", records, "--out", html)
    assert "health_clc_edp_none" in html.read_text()
