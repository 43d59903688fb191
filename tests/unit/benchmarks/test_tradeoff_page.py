"""benchmarks/tradeoff.py: its page is what the records say, and who is beaten by whom."""

import os
import re
import runpy
from pathlib import Path

import pytest

from edp_mx.runs.measured import spread_of
from edp_mx.runs.tables.query import Entry

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def script():
    return runpy.run_path(str(ROOT / "benchmarks" / "tradeoff.py"))


def point(script, name, ser, lira, *, is_plain):
    curve = script["Curve"]("SGD, stopped early" if is_plain else "eDP-SGD", {}, is_plain)
    shares = {"ser": ser, "auc": 0.5, "lira_auc": lira}
    spreads = {key: spread_of([value]) for key, value in shares.items()}
    return script["Point"](name, curve, Entry(records=(), **spreads))


def test_a_noisy_run_is_beaten_by_the_plain_one_that_is_no_worse_and_gives_less_away(script):
    plain = [
        point(script, "after 2 epochs", 0.20, 0.55, is_plain=True),
        point(script, "after 4 epochs", 0.10, 0.60, is_plain=True),
        point(script, "after 8 epochs", 0.05, 0.70, is_plain=True),
    ]
    for ser, lira, by in (
        (0.11, 0.60, "SGD, stopped early, after 4 epochs"),  # as little, at less SER
        (0.11, 0.59, "none"),
        (0.25, 0.56, "SGD, stopped early, after 2 epochs"),
        (0.04, 0.90, ""),  # no plain run is as good
    ):
        noisy = point(script, "z₀ = 0.1", ser, lira, is_plain=False)
        assert script["beaten_by"](noisy, [*plain, noisy]) == by
    assert script["beaten_by"](plain[0], plain) == ""
    entry = Entry(records=(), ser=spread_of([0.11]), auc=spread_of([0.5]))
    without_lira = script["Point"]("z₀ = 0.1", script["Curve"]("eDP-SGD", {}), entry)
    assert script["beaten_by"](without_lira, plain) == "SGD, stopped early, after 4 epochs"


def test_the_page_is_what_the_records_say(script, tmp_path, monkeypatch):
    written = (ROOT / "results" / "tradeoff.md").read_text("utf-8")
    options = re.search(r"tradeoff\.py (.*)`", written)[1].split()
    monkeypatch.chdir(ROOT)
    found, text = script["measured"]([*options, "--dry-run", "--runs", str(tmp_path)])
    assert text == written
    assert len(list((ROOT / "results" / "tradeoff").glob("*.json"))) >= sum(
        len(each.entry.records) for points in found.values() for each in points
    )
    assert os.access(ROOT / "docs" / "pictures" / "tradeoff.png", os.R_OK)
