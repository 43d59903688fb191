"""Table 2 over made-up times: medians, factors by round, what is extrapolated; the pages."""

import json

import pytest
from support.commands import edp_mx
from support.records import kept, record_of
from support.times import times_row

from edp_mx.runtime.structured import structure
from experiments.pages.table2 import HEADER, table2, table2_page
from experiments.tables.paper import TABLE_2
from experiments.tables.times import TimesRow

# Table 2 as printed: the epoch of SGD in seconds, the factors of DP-SGD and of eDP-SGD.
PRINTED = """
clc atis 9.5 2.1 1.04
clc snips 9.8 5.1 1.01
clc nlu_eval 9.9 7.3 1.03
clc health 21.8 153.9 1.14
clc communication 109.8 143.5 1.15
clc video 83.7 152.4 1.2
bert atis 2.5 13.0 1.29
bert snips 2.8 22.8 1.52
bert nlu_eval 3.5 29.2 1.62
bert health 56.5 82.0 2.06
bert communication 398.8 73.8 2.05
bert video 276.0 80.3 2.17
"""


def made_row(**changes):
    return structure(times_row(**changes), TimesRow)


def cells(**changes):
    whole, of_processor = table2([made_row(**changes)]).tables
    ((row,), (factors,)) = whole.rows, of_processor.rows
    assert [str(cell) for cell in factors[2:]] == [str(cell) for cell in row[3:6]]
    return dict(zip(HEADER, map(str, row)))


def test_the_paper_s_numbers_are_as_printed():
    found = [
        f"{family} {corpus} {' '.join(map(str, row))}"
        for family, rows in TABLE_2.items()
        for corpus, row in rows.items()
    ]
    assert found == PRINTED.strip().splitlines()


def test_an_epoch_is_that_of_all_steps_and_a_factor_is_taken_round_by_round():
    # 70 / 4 times 2, 1 and 4 s; the factors of the rounds are 1.1, 1, 1.2; 3, 4, 2; 1.5, 1.25, 1.
    assert list(cells().values()) == [
        "ATIS", "1 × 2", "≈ 35.0 (26.2–52.5) [9.5]", "1.10 (1.05–1.15) [1.04]",
        "3.00 (2.50–3.50) [2.1]", "1.25 (1.12–1.38)", "64 (48–96)", "32", "2,246",
        "3 × 4 of 70"]  # fmt: skip


@pytest.mark.parametrize(
    "changes, epoch",
    [
        ({"steps": 70}, "2.0 (1.5–3.0) [9.5]"),  # run whole
        ({"steps": 70, "measured_on": 300}, "≈ 2.0 (1.5–3.0) [9.5]"),
        (
            {"corpus": "health", "n": 450_000, "steps_per_epoch": 1757},
            "≈ 878.5 (658.9–1,317.8) [21.8]",
        ),
        ({"corpus": "video", "steps_per_epoch": 14_062}, "≈ 7,031 (5,273–10,546) [83.7]"),
        ({"corpus": "dstc8"}, "≈ 35.0 (26.2–52.5)"),  # the paper has none
    ],
)
def test_an_epoch_that_was_not_run_whole_is_marked(changes, epoch):
    assert cells(**changes)["SGD, s per epoch"] == epoch


def test_the_page_has_each_family_the_notes_what_is_missing_and_the_command():
    rows = [made_row(), made_row(workers=2, note="beside other work"), made_row(family="bert")]
    page = table2_page(rows, ["atis bert, 2 workers: no"])
    assert page.index("### CLC\n") < page.index("### BERT\n") < page.index("\nbeside other work\n")
    assert "- atis bert, 2 workers: no" in page and "Some CPU, 2 cores: 3 rows" in page
    assert page.count("experiments.table2\n```") == 1
    assert "BERT starts from random weights" in page and "20,000 utterances were drawn" not in page
    drawn = table2([made_row(corpus="health", n=450_000)]).texts
    assert "20,000 utterances were drawn" in drawn[1] and len(drawn) == 2


def test_the_report_shows_the_times_that_are_recorded(tmp_path):
    folder, times = kept(tmp_path / "records", [record_of()]), tmp_path / "times.json"
    times.write_text(json.dumps([times_row()]))
    out = tmp_path / "report.html"
    edp_mx("experiments.report", folder, "--times", times, "--out", out)
    assert "≈ 35.0 (26.2–52.5)" in out.with_suffix(".md").read_text()
    edp_mx("experiments.report", folder, "--times", tmp_path / "none.json", "--out", out)
    assert "≈ 35.0" not in out.read_text()
    times.write_text("{}")
    said = edp_mx("experiments.report", folder, "--times", times, "--out", out, code=2).stderr
    assert "times.json: rows: {} is not a list" in said
