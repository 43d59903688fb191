"""benchmarks/tradeoff.py: its page is what the records say, and who is beaten by whom."""

import os
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def script():
    return runpy.run_path(str(ROOT / "benchmarks" / "tradeoff.py"))


def point(script, name, ser, lira, *, is_plain):
    curve = script["Curve"]("SGD, stopped early" if is_plain else "eDP-SGD", {}, is_plain)
    return script["Point"](name, curve, [ser], [0.5], [lira], [0.1], 1.0, 2.0)


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


def test_the_page_is_what_the_records_say(script, tmp_path, monkeypatch):
    written = (ROOT / "results" / "tradeoff.md").read_text("utf-8")
    options = re.search(r"tradeoff\.py (.*)`", written)[1].split()
    monkeypatch.chdir(ROOT)
    found, text = script["measured"]([*options, "--dry-run", "--runs", str(tmp_path)])
    assert text == written
    assert len(list((ROOT / "results" / "tradeoff").glob("*.json"))) >= sum(
        len(each.ser) for points in found.values() for each in points
    )
    assert os.access(ROOT / "docs" / "pictures" / "tradeoff.png", os.R_OK)
