"""results/performance.md: what it says of bars, of what was not measured, and what it keeps."""

import json
import re
import socket
import sys
from dataclasses import replace

import pytest
from bars import Bar, quotient
from page import BUDGET, render
from performance import ROOT, kept, machine, main, run
from sections import SECTIONS, Section
from worker_cost import throughput

from edp_mx.errors import UserError

BAR = Bar("ours ÷ theirs", quotient("clc", of="ours", by="theirs"), limit=1.07, guard=1.25)
SECTION = Section("step", "A step", ("step_cost.py", "--rounds", "3"), 10, (BAR,))
MACHINE = {"cores": 2, "processor": "Some CPU", "versions": {"Python": "3.11.2"}}


def result_of(*ratios):
    """What a section leaves whose bar is the median of these."""
    figures = {"clc": {"ours": [2 * ratio for ratio in ratios], "theirs": [2.0] * len(ratios)}}
    return {"measured": figures, "printed": "| a table |", "machine": MACHINE, "seconds": 61.0}


@pytest.mark.parametrize(
    ("ratios", "row", "sentence"),
    [
        ((1.2, 1.04, 1.0), "| ≤ 1.07 | 1.04 (1.02–1.12) | holds |", "1 of 1 bars hold, 0 are"),
        ((1.0, 1.08, 3.0), "| ≤ 1.07 | 1.08 (1.04–2.04) | missed |", "0 of 1 bars hold, 1 are"),
        ((1.07,), "| ≤ 1.07 | 1.07 (1.07–1.07) | holds |", "1 of 1 bars hold, 0 are"),
    ],
)
def test_a_bar_is_said_to_hold_or_to_be_missed(ratios, row, sentence):
    page = " ".join(render({"step": result_of(*ratios)}, [SECTION]).split())
    assert page.count(row) == 2  # in the summary and in its section
    assert sentence in page


def test_a_lower_limit_is_missed_from_below():
    bar = replace(BAR, limit=8.0, guard=4.0, is_least=True)
    medians = {7.9: (False, True), 8.0: (True, True), 3.9: (False, False)}
    for median, expected in medians.items():
        measured = result_of(median)["measured"]
        assert (bar.holds(measured), bar.guards(measured)) == expected
    assert bar.show_limit() == "≥ 8"


def test_what_was_not_measured_is_said_and_counts_for_no_bar():
    absent = replace(SECTION, missing="run setup.sh")
    other = replace(SECTION, name="other", title="Another", bars=())
    page = render({"other": result_of(1.0)}, [absent, other])
    assert "Not measured: run setup.sh." in page
    assert "0 of 0 bars hold" in page
    assert "1 of 2 sections were measured" in page
    assert "step_cost.py --rounds 3" in page


def test_the_page_has_command_machine_and_time():
    page = render({"step": result_of(1.0)}, [SECTION])
    assert (
        "`.venv/bin/python benchmarks/step_cost.py --rounds 3` (61 s; 2 cores, Some CPU, " in page
    )
    assert "| a table |" in page
    assert "in 61 seconds (within 600)" in page
    slow = {**result_of(1.0), "seconds": 601.0}
    assert "in 601 seconds (beyond 600)" in render({"step": slow}, [SECTION])


def test_the_machine_is_described_without_host_or_path():
    text = json.dumps(machine())
    assert socket.gethostname() not in re.findall(r"[\w.-]+", text)  # a short one may be in a word
    assert "/" not in text
    assert machine()["versions"]["mxnet"]


def test_throughput_by_hand():
    result = {"examples": {"each": {"1": 32, "2": 64}}, "seconds": {"each": {"1": [2.0, 4.0]}}}
    result["seconds"]["each"]["2"] = [2.0, 16.0]
    rates = throughput(result, "each")
    assert rates == {"1": [16.0, 8.0], "2": [32.0, 4.0]}
    assert quotient(of="2", by="1")(rates) == [2.0, 0.5]


def test_the_budgets_of_all_sections_are_within_ten_minutes():
    assert sum(section.seconds for section in SECTIONS) <= BUDGET == 600
    assert len({section.name for section in SECTIONS}) == len(SECTIONS)
    for section in SECTIONS:
        assert (ROOT / "benchmarks" / section.arguments[0]).is_file()
        for bar in section.bars:  # slack, not another bar
            assert bar.guard < bar.limit if bar.is_least else bar.guard > bar.limit


@pytest.fixture
def only(monkeypatch, tmp_path):
    """Runs the command on some sections in a folder of its own, without measuring."""
    sections = [SECTION, replace(SECTION, name="other", title="Another")]
    monkeypatch.setattr("performance.SECTIONS", sections)

    def command(results, *names):
        monkeypatch.setattr("performance.measured", lambda section: results.get(section.name))
        arguments = [
            "performance.py",
            "--out",
            str(tmp_path),
            *(["--only", *names] if names else []),
        ]
        monkeypatch.setattr(sys, "argv", arguments)
        return main()

    return command


def test_sections_that_are_not_measured_again_stay_as_they_were(only, tmp_path):
    assert only({"step": result_of(1.0), "other": result_of(2.0)}) == 0
    before = (tmp_path / "performance.md").read_text()
    assert before.count("1.00 (1.00–1.00)") == before.count("2.00 (2.00–2.00)") == 2
    assert only({"step": result_of(1.5)}, "step") == 0
    after = (tmp_path / "performance.md").read_text()
    assert "1.00 (1.00–1.00)" not in after
    assert after.count("1.50 (1.50–1.50)") == after.count("2.00 (2.00–2.00)") == 2
    assert before.split("## Another")[1] == after.split("## Another")[1]
    assert kept(tmp_path) == {"step": result_of(1.5), "other": result_of(2.0)}


def test_a_failed_section_stays_as_it_was_and_the_others_are_written(only, tmp_path, capsys):
    only({"step": result_of(1.0), "other": result_of(2.0)})
    assert only({"other": result_of(3.0)}) == 1
    assert "failed, and left as they were: step" in capsys.readouterr().err
    assert kept(tmp_path) == {"step": result_of(1.0), "other": result_of(3.0)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"step": {\n "seconds": 1', "performance.json, line 2: not JSON"),
        ('{"step": {"seconds": 1}}', "does not hold sections with machine, measured"),
        ("[1]", "does not hold sections with machine, measured"),
    ],
)
def test_broken_figures_are_refused_and_left_alone(only, tmp_path, capsys, text, message):
    (tmp_path / "performance.json").write_text(text)
    assert only({"step": result_of(1.0)}) == 2
    assert message in capsys.readouterr().err
    assert (tmp_path / "performance.json").read_text() == text
    assert not (tmp_path / "performance.md").exists()


@pytest.mark.parametrize("figures", [{}, {"clc": None}, {"clc": {"ours": [1.0], "theirs": [0.0]}}])
def test_figures_that_a_bar_cannot_read_are_named(only, tmp_path, figures):
    only({"other": result_of(2.0)}, "other")
    before = (tmp_path / "performance.json").read_text()
    with pytest.raises(UserError, match="section step .* --only step"):
        render({"step": {**result_of(1.0), "measured": figures}}, [SECTION])
    assert only({"step": {**result_of(1.0), "measured": figures}}, "step") == 2
    assert (tmp_path / "performance.json").read_text() == before


def test_what_is_impossible_here_is_left_out_and_no_failure(monkeypatch, only, tmp_path, capsys):
    sections = [replace(SECTION, needs="no-such-folder", missing="it needs more")]
    monkeypatch.setattr("performance.SECTIONS", sections)
    assert only({"step": result_of(1.0)}) == 0
    assert "step: left out; it needs more" in capsys.readouterr().err
    assert "Not measured: it needs more." in (tmp_path / "performance.md").read_text()


def test_the_page_can_be_made_without_measuring(only, tmp_path):
    only({"step": result_of(1.0), "other": result_of(2.0)})
    page = (tmp_path / "performance.md").read_text()
    (tmp_path / "performance.md").unlink()
    assert only({}, "nothing") == 0
    assert (tmp_path / "performance.md").read_text() == page


def test_a_program_chooses_its_threads_and_loses_the_launchers_prefix(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    program = "import os; print('[0]<stdout>:a'); print('b', os.environ.get('OMP_NUM_THREADS'))"
    assert run([sys.executable, "-c", program], seconds=250) == "a\nb None"
    assert run([sys.executable, "-c", program], seconds=250, threads=1) == "a\nb 1"


def test_a_program_that_fails_or_hangs_is_no_result():
    assert run([sys.executable, "-c", "raise SystemExit(3)"], seconds=60) is None
    sleeper = "import time; time.sleep(600)"
    assert run([sys.executable, "-c", sleeper], seconds=1) is None


def test_the_committed_page_is_made_from_the_committed_figures():
    if not (ROOT / "results" / "performance.json").exists():
        pytest.skip("nothing was measured yet: run benchmarks/performance.py")
    page = (ROOT / "results" / "performance.md").read_text(encoding="utf-8")
    assert page == render(kept(ROOT / "results"), SECTIONS)
