"""benchmarks/performance.py: what it says of bars, and what it keeps where a benchmark fails."""

import json
import sys
from dataclasses import replace

import pytest
from measuring import ROOT, in_turn, ratios
from performance import BUDGET, bar_rows, main, run
from sections import SECTIONS, Bar, Section

BAR = Bar("ours ÷ theirs", limit=1.07, guard=1.25)
SECTION = Section("step", "A step", "step_cost.py --rounds 3", 10, (BAR,))


def result_of(*values, seconds=61.0):
    """What a benchmark leaves whose one figure took these values."""
    figures = {BAR.figure: list(values)}
    return {"figures": figures, "printed": "| a |", "machine": "2 cores", "seconds": seconds}


@pytest.mark.parametrize(
    ("bar", "values", "row"),
    [
        (BAR, (1.2, 1.04, 1.0), ["≤ 1.07", "1.04 (1.02–1.12)"]),
        (BAR, (1.0, 1.08, 3.0), ["≤ 1.07", "**1.08 (1.04–2.04)**"]),
        (BAR, (1.07,), ["≤ 1.07", "1.07"]),
        (replace(BAR, limit=8.0, is_least=True), (7.9,), ["≥ 8", "**7.90**"]),
        (replace(BAR, limit=8.0, is_least=True), (8.0,), ["≥ 8", "8.00"]),
        (BAR, (), ["≤ 1.07", ""]),
    ],
)
def test_a_bar_holds_if_the_median_keeps_to_it(bar, values, row):
    section = replace(SECTION, bars=(bar,))
    columns = {"Haswell": {"step": result_of(*values)}, "SkylakeX": {}}
    assert bar_rows(section, columns) == [["step", BAR.figure, *row, ""]]
    slack = bar.holds(values or [9.0], limit=bar.guard)
    assert slack == (bool(values) or bar.is_least)


def test_budgets_and_guards():
    assert sum(section.seconds for section in SECTIONS) <= BUDGET == 600
    assert len({section.name for section in SECTIONS}) == len(SECTIONS)
    assert sum(len(section.bars) for section in SECTIONS) == 42
    for section in SECTIONS:
        assert (ROOT / "benchmarks" / section.script.split()[0]).is_file()
        for bar in section.bars:  # slack, not another bar
            assert bar.guard < bar.limit if bar.is_least else bar.guard > bar.limit


def test_the_record_has_every_figure_that_a_bar_reads():
    record = json.loads((ROOT / "results" / "performance.json").read_text())
    rows = [row for section in SECTIONS for row in bar_rows(section, record["columns"])]
    assert len(record["columns"]) == 2 and all(all(row) for row in rows)


@pytest.fixture
def only(monkeypatch, tmp_path):
    """Runs the command on some of two sections in a folder of its own, without measuring."""
    monkeypatch.setattr("performance.SECTIONS", [SECTION, replace(SECTION, name="other")])

    def command(results, *names):
        monkeypatch.setattr(
            "performance.measure", lambda section, *, kernels: results.get(section.name)
        )
        monkeypatch.setattr(sys, "argv", ["x", "--out", str(tmp_path), "--only", *names])
        code = main()
        return code, json.loads((tmp_path / "performance.json").read_text())["columns"]["SkylakeX"]

    return command


def test_what_is_not_measured_again_or_fails_stays_as_it_was(only, tmp_path, capsys):
    first = {"step": result_of(1.0), "other": result_of(2.0)}
    assert only(first, "step", "other") == (0, first)
    again = {**first, "step": result_of(1.5)}
    assert only(again, "step") == (0, again)
    assert only({"other": result_of(3.0)}, "step", "other") == (1, {**again, "other": result_of(3)})
    assert "failed, and left as they were: step" in capsys.readouterr().err
    page = (tmp_path / "performance.md").read_text()
    (tmp_path / "performance.md").unlink()
    only({})  # the page is made from the record
    assert (tmp_path / "performance.md").read_text() == page


def test_a_torn_record_is_refused_and_left_alone(monkeypatch, tmp_path, capsys):
    (tmp_path / "performance.json").write_text('{"step": {')
    monkeypatch.setattr(sys, "argv", ["x", "--out", str(tmp_path)])
    assert main() == 2
    assert "performance.json, line 1: not JSON" in capsys.readouterr().err
    assert (tmp_path / "performance.json").read_text() == '{"step": {'


def test_a_program_chooses_its_threads_and_loses_the_launchers_prefix(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    program = "import os; print('[0]<stdout>:a'); print('b', os.environ.get('OMP_NUM_THREADS'))"
    assert run([sys.executable, "-c", program], seconds=250) == "a\nb None"
    assert run([sys.executable, "-c", program], seconds=250, threads=1) == "a\nb 1"


def test_a_program_that_fails_or_hangs_is_no_result():
    assert run([sys.executable, "-c", "raise SystemExit(1)"], seconds=60) is None
    sleeper = "import time; time.sleep(600)"
    assert run([sys.executable, "-c", sleeper], seconds=1) is None


def test_steps_take_turns_and_the_first_rounds_do_not_count():
    calls = []
    steps = {name: lambda name=name: calls.append(name) or len(calls) for name in "ab"}
    seconds = in_turn(steps, rounds=9)
    rounds = ["".join(calls[i : i + 2]) for i in range(0, len(calls), 2)]
    assert len(rounds) == 11 and set(rounds) == {"ab", "ba"}
    assert seconds["a"] == [2 * i + 1 + rounds[i].index("a") for i in range(2, 11)]
    assert ratios({"a": [5, 8], "b": [6, 7]}, "a", "b") == [5 / 6, 8 / 7]
