"""experiments/tradeoff.py: its page is what the records say, and who is beaten by whom."""

import os
import re
from pathlib import Path

from support.records import lines_in

from edp_mx.runs.measurements import spread_of
from experiments.command import parse
from experiments.pages.tradeoff import Curve, Point, beaten_by, draw
from experiments.tables.query import Entry
from experiments.tradeoff import measured

ROOT = Path(__file__).resolve().parents[3]


def point(name, ser, lira, *, is_plain):
    curve = Curve("SGD, stopped early" if is_plain else "eDP-SGD", {}, is_plain)
    shares = {"ser": ser, "auc": 0.5, "lira_auc": lira}
    spreads = {key: spread_of([value]) for key, value in shares.items()}
    return Point(name, curve, Entry(records=(), **spreads))


def test_a_noisy_run_is_beaten_by_the_plain_one_that_is_no_worse_and_gives_less_away():
    plain = [
        point("after 2 epochs", 0.20, 0.55, is_plain=True),
        point("after 4 epochs", 0.10, 0.60, is_plain=True),
        point("after 8 epochs", 0.05, 0.70, is_plain=True),
    ]
    for ser, lira, by in (
        (0.11, 0.60, "SGD, stopped early, after 4 epochs"),  # as little, at less SER
        (0.11, 0.59, "none"),
        (0.25, 0.56, "SGD, stopped early, after 2 epochs"),
        (0.04, 0.90, ""),  # no plain run is as good
    ):
        noisy = point("z₀ = 0.1", ser, lira, is_plain=False)
        assert beaten_by(noisy, [*plain, noisy]) == by
    assert beaten_by(plain[0], plain) == ""
    entry = Entry(records=(), ser=spread_of([0.11]), auc=spread_of([0.5]))
    without_lira = Point("z₀ = 0.1", Curve("eDP-SGD", {}), entry)
    assert beaten_by(without_lira, plain) == "SGD, stopped early, after 4 epochs"


def test_runs_that_were_not_attacked_are_not_drawn(tmp_path):
    entry = Entry(records=(), ser=spread_of([0.1]))
    points = [Point("z₀ = 0.1", Curve("eDP-SGD", {}), entry)] * 3
    draw({("snips", "clc"): points}, tmp_path / "a.png")
    assert not any(tmp_path.iterdir())


def test_the_page_is_what_the_records_say(tmp_path, monkeypatch):
    written = (ROOT / "results" / "tradeoff.md").read_text("utf-8")
    options = re.search(r"experiments\.tradeoff (.*)`", written)[1].split()
    monkeypatch.chdir(ROOT)
    found, text = measured(parse("tradeoff", [*options, "--dry-run", "--runs", str(tmp_path)]))
    assert text == written
    shown = sum(len(each.entry.records) for points in found.values() for each in points)
    assert len(lines_in(ROOT / "results" / "tradeoff")[0]) >= shown
    assert os.access(ROOT / "docs" / "pictures" / "tradeoff.png", os.R_OK)
