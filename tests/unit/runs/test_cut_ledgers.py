"""A ledger that lacks lines at its end is not believed, whoever asks for its ε."""

import dataclasses
import json
import math
import shutil

import numpy as np
import pytest
from support.commands import edp_mx
from support.gaussian import gaussian_epsilon
from support.made_ledgers import poisson_plan, write_plan
from support.made_runs import AFTER_THREE, SIX_EPOCHS, TRUE, cut, finished
from support.records import lines_in
from support.refusals import one_sentence

from edp_mx import api
from edp_mx.dp.accounting.ledger import LedgerFile, read_ledger
from edp_mx.dp.checkpoint_file import write_checkpoint
from edp_mx.errors import UserError
from edp_mx.runs import recount as counted
from edp_mx.runs.interrupted import resumes_with
from edp_mx.runs.recount import privacy_of, recount
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runs.spending import RunSpending
from edp_mx.runtime import disk_cache
from edp_mx.runtime.distributed import start

COMMANDS = (
    ["account"], ["account", "--json"], ["account", "--delta", "1e-6"], ["explain"], ["compare"],
    ["compare", "--json"], ["runs"], ["runs", "--json"], ["runs", "keep"], ["watch", "--once"],
    ["watch", "--json"], ["report", "--out", "page.html"],
)  # fmt: skip


def said_by(command, run, code=0):
    words = [*command[:2], run, *command[2:]] if command[:2] == ["runs", "keep"] else [*command]
    words = words if run in words else [*words, run]
    return edp_mx(*words, code=code)


def epsilon_of(releases, z, delta):
    """Of the Gaussian mechanism, by a closed form that is independent of ours."""
    return gaussian_epsilon(delta, math.sqrt(releases) / z)


def test_the_figures_are_those_of_the_closed_form():
    z, delta = SIX_EPOCHS.noise_multiplier, SIX_EPOCHS.delta
    assert epsilon_of(6, z, delta) == pytest.approx(TRUE, rel=1e-5)
    assert epsilon_of(3, z, delta) == pytest.approx(AFTER_THREE, rel=1e-5)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_whole_the_true_epsilon_is_printed_and_cut_none(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    run = finished(tmp_path / "run")
    if command[0] not in ("report", "runs") and "1e-6" not in command:
        assert f"{TRUE:.3g}" in said_by(command, run.path).stdout
    else:
        said_by(command, run.path)
    assert cut(run, 3) == 5
    errors = said_by(command, run.path, code=2).stderr
    assert errors.count("\n") == 1 and "Traceback" not in errors
    assert "has 5 lines, but privacy.json says that it ended with line 8" in errors
    assert f"{AFTER_THREE:.2f}" not in errors and "restore the ledger" in errors


@pytest.mark.parametrize("lines", [1, 3, 6, 7])
@pytest.mark.parametrize("left", ["privacy", "record", "metrics", "results"])
def test_each_witness_is_enough(tmp_path, lines, left):
    """Also for older runs, whose files do not say where the ledger ended."""
    run = finished(tmp_path / "run", has_end=left in ("privacy", "record"))
    privacy = {**run.read("privacy")}
    if left != "privacy":
        run.write("privacy", {key: privacy[key] for key in privacy if key != "ledger_end"})
    if left != "record":
        (run.path / "record.json").unlink()
    if left != "metrics":
        run.metrics.unlink()
    assert recount(run).spent.holds.epsilon.value == pytest.approx(TRUE, rel=1e-5)
    cut(run, lines)
    for asked in (recount, lambda run: privacy_of(run, [])):
        one_sentence("lines are missing at its end, and no ε", asked, run)
    one_sentence("lines are missing", api.account, run.path)
    one_sentence("lines are missing", api.account, run.ledger)


def test_an_older_run_whose_length_nothing_shows_may_not_have_less_than_it_states(tmp_path):
    """It might have stopped early, and neither log nor record is there: 5.392 of privacy.json."""
    plan = dataclasses.replace(SIX_EPOCHS, max_epsilon=6.0)
    run = finished(tmp_path / "run", plan, has_end=False)
    (run.path / "record.json").unlink()
    run.metrics.unlink()
    assert privacy_of(run, []).holds.epsilon == pytest.approx(TRUE, rel=1e-5)
    cut(run, 3)
    one_sentence(r"states ε = 6.64\d+ as published, but .* up to 4.51", recount, run)


def test_a_ledger_written_anew_without_hashes_or_with_others_is_refused(tmp_path):
    run = finished(tmp_path / "run")
    run.ledger.unlink()
    write_plan(run.ledger, SIX_EPOCHS, scales=[1.0, 0.5])  # as long, and whole by itself
    one_sentence("has 8 lines, but privacy.json .* line 8 and the hash", recount, run)


def test_what_goes_on_after_its_last_checkpoint_stays_readable_and_what_is_cut_does_not(tmp_path):
    """A run that was interrupted in its fourth epoch, after the checkpoint of the third."""
    run = finished(tmp_path / "run")
    for name in ("results", "record", "privacy"):
        (run.path / f"{name}.json").unlink()
    rows = run.metrics.read_text().splitlines(keepends=True)
    run.metrics.write_text("".join(rows[:2]))
    cut(run, 3)  # six lines: the head, α, and three epochs
    mark = LedgerFile(run.ledger, SIX_EPOCHS).mark()
    facts = {"epochs": 3, "ledger_size": mark.size, "ledger_digest": mark.digest}
    write_checkpoint(run.checkpoint, {f"facts/{key}": np.array(facts[key]) for key in facts})
    LedgerFile(run.ledger, SIX_EPOCHS).append(SIX_EPOCHS.entry(3))
    z, delta = SIX_EPOCHS.noise_multiplier, SIX_EPOCHS.delta
    for said in (edp_mx("account", run.path), edp_mx("explain", run.path)):
        assert f"{epsilon_of(4, z, delta):.3g}" in said.stdout
    assert f"ε will be {epsilon_of(7, z, delta):.3g}" in resumes_with(run)  # one is repeated
    watched = edp_mx("watch", run.path, "--once", code=1).stdout
    assert f"{epsilon_of(2, z, delta):.3g}" in watched and "∞" not in watched
    cut(run, 2)
    refused = "is shorter than the checkpoint's"
    for command in (["account"], ["explain"], ["watch", "--once"]):
        assert refused in edp_mx(*command, run.path, code=2).stderr
    one_sentence(refused, RunSpending, SIX_EPOCHS, start(), run)


def test_an_epoch_that_a_budget_cut_off_is_no_contradiction(tmp_path):
    plan = poisson_plan(max_epsilon=3.0)
    run = finished(tmp_path / "run", plan, has_end=False)
    run.ledger.unlink()
    write_plan(run.ledger, plan, [plan.entry(0), plan.entry(1), plan.entry(2, 7)], scales=[1.0])
    assert len(recount(run).ledger.entries) == 3
    run.ledger.unlink()
    write_plan(run.ledger, plan, [plan.entry(0), plan.entry(1, 69), plan.entry(2)], scales=[1.0])
    one_sentence("has 69 of the 70 steps of epoch 2, but metrics.jsonl", recount, run)


@pytest.mark.parametrize("gone", [("layers",), ("layers", "split", "vocabulary"), ()])
def test_what_was_released_is_not_forgotten_when_files_go(tmp_path, gone):
    """Killed, then without ledger and checkpoints: not a new run, as long as anything tells."""
    run = finished(tmp_path / "run")
    for name in ("results", "record", "privacy", *gone):
        (run.path / f"{name}.json").unlink(missing_ok=True)
    head = run.ledger.read_bytes().splitlines(keepends=True)[0]
    run.ledger.unlink()
    with pytest.raises(UserError, match="is missing, though environment.json is there"):
        RunSpending(SIX_EPOCHS, start(), run)
    assert not run.ledger.exists()
    run.ledger.write_bytes(b"")
    with pytest.raises(UserError, match="is empty, though environment.json is there"):
        RunSpending(SIX_EPOCHS, start(), run)
    run.ledger.write_bytes(head)
    run.metrics.unlink()  # the environment and a ledger's head
    with pytest.raises(UserError, match="has only its first line, but environment.json is there"):
        RunSpending(SIX_EPOCHS, start(), run)
    (run.path / "environment.json").unlink()
    for name in ("layers", "split"):
        (run.path / f"{name}.json").unlink(missing_ok=True)
    assert RunSpending(SIX_EPOCHS, start(), run).known_scales() is None  # a start that failed


STATED = {"epsilon_as_published": 0.01, "epsilon_holds": 0.01, "epsilon_holds_if": 0.01}


def test_an_edited_record_and_log_are_not_printed(tmp_path, monkeypatch):
    """0.01 is stated by record.json and metrics.jsonl; 5.392 was spent."""
    monkeypatch.chdir(tmp_path)
    run = finished(tmp_path / "runs" / "run", stated=STATED)
    for command in (["runs"], ["watch", "--once"]):
        said = edp_mx(*command, run.path).stdout
        assert "5.39" in said and "0.01" not in said and "ledger" not in said
    (found,) = json.loads(edp_mx("runs", run.path, "--json").stdout)
    assert found["holds"]["epsilon"] == pytest.approx(TRUE, rel=1e-5)
    assert found["epsilon_from"] == "ledger"
    watched = json.loads(edp_mx("watch", run.path, "--json").stdout)["epochs"]
    z, delta = SIX_EPOCHS.noise_multiplier, SIX_EPOCHS.delta
    for count, row in enumerate(watched, start=1):
        assert row["epsilon_holds"] == pytest.approx(epsilon_of(count, z, delta), rel=1e-5)
    edp_mx("report", run.path, "--out", "page.html")
    page = (tmp_path / "page.md").read_text()
    assert "| 5.39 " in page and "0.01 " not in page and "ledger was counted" not in page
    kept = tmp_path / "kept"
    edp_mx("runs", "keep", run.path, "--into", kept)
    (record,) = map(json.loads, lines_in(kept)[0])
    assert record["holds"]["epsilon"] == pytest.approx(TRUE, rel=1e-5)
    assert record["ledger_end"] == read_ledger(run.ledger).chain.end
    assert "epsilon_from" not in record
    edp_mx("runs", "keep", run.path, "--into", kept)  # it is the same run's


def test_where_only_the_record_is_that_is_said_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        run = finished(tmp_path / "runs" / name)
        edp_mx("runs", "keep", run.path, "--into", "kept")
    note = "is only what the record states: no ledger was counted"
    both = edp_mx("runs", "runs", "kept").stdout
    assert both.count("5.39") == 2 and note not in " ".join(both.split())  # each run once
    shutil.rmtree("runs")
    alone = edp_mx("runs", "kept").stdout
    assert alone.count("5.39") == 2 and " ".join(alone.split()).count(note) == 1
    assert {
        each["epsilon_from"] for each in json.loads(edp_mx("runs", "kept", "--json").stdout)
    } == {"record"}
    edp_mx("report", "kept", "--out", "page.html")
    assert (tmp_path / "page.md").read_text().count(note) == 1


def test_a_ledger_is_counted_once_and_never_taken_for_another(tmp_path, monkeypatch):
    counts = []
    monkeypatch.setattr(counted, "_code", lambda: str(tmp_path))  # nothing is known yet
    original = disk_cache.write_json
    monkeypatch.setattr(
        disk_cache, "write_json", lambda *given: (counts.append(1), original(*given))
    )
    runs = [finished(tmp_path / name) for name in ("a", "b")]
    other = finished(tmp_path / "c", dataclasses.replace(SIX_EPOCHS, delta=1e-6))
    for _ in range(2):
        for run in runs:
            assert privacy_of(run, []).holds.epsilon == pytest.approx(TRUE, rel=1e-5)
        z = SIX_EPOCHS.noise_multiplier
        there = privacy_of(other, []).holds.epsilon
        assert there == pytest.approx(epsilon_of(6, z, 1e-6), rel=1e-5)
    assert len(counts) == 2


@pytest.mark.parametrize("first, count", [(60, 20), (70, 1), (10**9, 1)])
def test_a_line_that_no_epoch_has_room_for_is_refused(tmp_path, first, count):
    plan = poisson_plan()
    path = write_plan(tmp_path / "ledger", plan, [plan.entry(0, 70, 0)])
    assert len(read_ledger(path).entries) == 1
    LedgerFile(path, plan).append(plan.entry(1, count, first))
    one_sentence(f"line 3: first_step is {first} .* an epoch has 70 steps", read_ledger, path)


def test_a_run_directory_of_two_finished_runs_compares_their_true_figures(tmp_path):
    runs = [finished(tmp_path / name) for name in ("a", "b")]
    stated = runs[1].read("privacy")
    runs[1].write("privacy", {**stated, "holds": {**stated["holds"], "epsilon": 0.25}})
    told = json.loads(edp_mx("compare", *(run.path for run in runs), "--json").stdout)
    assert [one["privacy"]["holds"]["epsilon"] for one in told] == 2 * [pytest.approx(TRUE, 1e-5)]
    assert told[0]["differences"] == [] and "states ε = 0.25" in told[1]["differences"][0]
    assert isinstance(RunDirectory(runs[0].path).read("record")["ledger_end"]["lines"], int)
