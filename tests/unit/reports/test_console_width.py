"""Tables on a console: in 80 columns, with nothing lost, and as JSON."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cli import printed, strictly
from support.made_ledgers import plan_with, run_of
from support.records import changed, record_of

from edp_mx.reports.attack_page import HEADER as ATTACK
from edp_mx.reports.table import WIDTH, fit, parse_table, render_table
from edp_mx.runs.recount import recount
from edp_mx.runs.run_directory import RunDirectory

cell = st.text("ab1.%ε ", max_size=30).map(str.strip)


@given(st.integers(1, 6).flatmap(lambda n: st.lists(st.lists(cell, min_size=n, max_size=n),
                                                    min_size=2, max_size=5)))  # fmt: skip
def test_blocks_hold_what_the_table_held(table):
    header, *rows = table
    text = render_table(header, rows)
    found = fit(text)
    assert max(map(len, found.splitlines()), default=0) <= WIDTH
    if len(text.splitlines()[0]) <= WIDTH:
        assert found == text
        return
    blocks = [block.split("\n") for block in found.split("\n\n")]
    for row, (first, *others) in zip(rows, blocks):
        assert first == row[0] and len(others) == sum(map(bool, row[1:]))
        filled = [pair for pair in zip(header[1:], row[1:]) if pair[1]]
        for line, (name, value) in zip(others, filled):
            assert line.startswith(f"  {name}") and line.endswith(value)


def test_prose_is_wrapped_where_it_stands_in_and_commands_are_not():
    prose, command = "    if " + "the words are public and " * 6, "edp-mx train " + "x" * 90
    found = fit(f"{prose}\n{command}\nshort").split("\n")
    assert found[-2:] == [command, "short"] and max(map(len, found[:-2])) <= WIDTH
    assert " ".join(" ".join(found[:-2]).split()) == prose.strip()
    assert found[0].startswith("    if") and found[1].startswith("      ")


def test_the_table_of_an_attack_becomes_blocks():
    row = ["loss", "67.5 (66.1 to 68.9)", "1.2 (0.8 to 1.9)", "0.1 (0.0 to 0.4)", "62.0", "63.1"]
    lines = fit(render_table(ATTACK, [row])).splitlines()
    assert lines[0] == "loss" and lines[1].strip().startswith("AUC %  ")
    assert [line.split("  ")[-1].strip() for line in lines[1:]] == row[1:]


@pytest.fixture
def runs(tmp_path):
    """Folders of two finished runs, one with a name as they are by default."""
    folders = []
    for name, delta in (("sgd", 1e-3), ("atis_clc_edp_exponential-20260101-120000", 1e-4)):
        run = RunDirectory(run_of(tmp_path / name, plan_with({"unit": "utterance"}, delta=delta,
                                                             num_records=500)))  # fmt: skip
        run.config.write_text("")
        run.write("privacy", recount(run).spent.to_dict())
        scores = {"ser": 0.25, "intent_accuracy": 0.5, "slot_f1": 0.5}
        run.write("results", {"test": scores, "baseline": {**scores, "intent": "x", "ser": 0.9}})
        folders.append(run.path)
    return folders


def test_compare_fits_stays_wide_if_asked_and_speaks_json(runs, capsys):
    one = printed(capsys, "compare", runs[0])
    assert one.startswith("| run ") and "ε at δ = 0.001\n" in one
    two = printed(capsys, "compare", *runs)
    assert max(map(len, two.splitlines())) <= WIDTH
    assert two.startswith("sgd\n  SER %         25.00\n") and f"\n\n{runs[1].name}\n" in two
    header, rows = parse_table(
        "\n".join(printed(capsys, "compare", *runs, "--wide").split("\n")[:4])
    )
    assert [row[0] for row in rows] == [run.name for run in runs] and "ε that holds" in header
    found = strictly(printed(capsys, "compare", *runs, "--json"))
    assert [each["run"] for each in found] == [run.name for run in runs]
    assert found[1]["test"]["ser"] == 0.25 and found[1]["privacy"]["delta"] == 1e-4
    assert found[1]["baseline"]["intent"] == "x"


@pytest.mark.parametrize(
    "options",
    [
        ("account", "--noise-multiplier", "20", "--epochs", "30", "--num-examples", "4478",
         "--workers", "8"),
        ("account", "--noise-multiplier", "2", "--epochs", "5", "--delta", "1e-5", "--sampler",
         "poisson", "--sample-rate", "0.01"),
        ("calibrate", "--mechanism", "dp_sgd", "--target-epsilon", "3", "--num-examples", "4478",
         "--epochs", "60", "--workers", "2", "--batch-size", "512", "--sampler", "poisson"),
    ],
)  # fmt: skip
def test_other_commands_fit_too(options, capsys):
    assert max(map(len, printed(capsys, *options).splitlines())) <= WIDTH


def test_runs_on_other_test_parts_and_of_other_families_are_named(runs, capsys):
    for run, corpus, family in zip(runs, ("atis", "health"), ("clc", "bert")):
        settings = f"data: {{corpus: {corpus}}}\nmodel: {{family: {family}}}\nname: a\n"
        settings += "privacy: {mechanism: edp_sgd}\n"
        RunDirectory(run).config.write_text(settings)
        record = changed(record_of(corpus, family, mechanism="edp_sgd"), epochs=4)
        RunDirectory(run).write("record", record)
    said = " ".join(printed(capsys, "compare", *runs).split())
    names = [run.name for run in runs]
    assert f"test parts differ ({names[0]} atis, {names[1]} health): their scores do not" in said
    assert f"The families differ ({names[0]} clc, {names[1]} bert)." in said
    assert "+0.0" not in said
    prints = {"num_workers": 1, "fingerprints": {"test": {"key": "k", "digest": "d"}}}
    for run in runs:
        RunDirectory(run).write("environment", prints)
    said = printed(capsys, "compare", *runs)
    assert "test parts differ" not in said and "+0.0" in said  # one part under two names
