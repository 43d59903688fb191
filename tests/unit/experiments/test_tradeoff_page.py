"""experiments/tradeoff.py: its page is what the records say, and who is beaten by whom."""

import os
import re
from pathlib import Path
from types import SimpleNamespace

from support.records import lines_in, record_of

from edp_mx.runs.measurements import spread_of
from experiments.command import parse
from experiments.pages.tradeoff import Curve, Point, beaten_by, draw
from experiments.tables.query import Entry
from experiments.tradeoff import measured, points_of

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


def test_what_lies_within_the_seeds_is_beaten_by_chance():
    def measured(name, sers, is_plain):
        curve = Curve("SGD, stopped early" if is_plain else "eDP-SGD", {}, is_plain)
        spreads = {"ser": spread_of(sers), "auc": spread_of([0.5])}
        return Point(name, curve, Entry((), by_seed={"ser": tuple(sers)}, **spreads))

    plain = measured("after 4 epochs", [0.10, 0.11, 0.12], True)
    for sers, end in (([0.11, 0.12, 0.13], " (by chance)"), ([0.21, 0.22, 0.23], "")):
        noisy = measured("z₀ = 0.1", sers, False)
        assert beaten_by(noisy, [plain, noisy]) == f"SGD, stopped early, after 4 epochs{end}"


def test_the_points_of_a_place_are_from_one_start(tmp_path, monkeypatch):
    """Of two pre-trainings that which most points have, not the mean of both; no run twice."""
    monkeypatch.chdir(tmp_path)
    one, other = ({"model.checkpoint": f"sha256:{start}"} for start in ("aa", "bb"))
    small = {"privacy.noise_multiplier": 0.01, "training.epochs": 12}
    records = {
        "sgd": [record_of("atis", "bert", "none", ser=0.05, **one),
                record_of("atis", "bert", "none", ser=0.07, **other)],
        "norm_0.01": [record_of("atis", "bert", "edp_sgd", ser=0.09, **one, **small)],
        "norm_0.1": [record_of("atis", "bert", "edp_sgd", ser=0.5, **other)],
    }  # fmt: skip
    cells = [
        SimpleNamespace(corpus="atis", family="bert", method=name,
                        trial=SimpleNamespace(records=its))
        for name, its in records.items()
    ]  # fmt: skip
    cells.append(SimpleNamespace(corpus="atis", family="bert", method="largest_0.01",
                                 trial=SimpleNamespace(records=records["norm_0.01"])))  # fmt: skip
    (points,) = points_of(cells).values()
    assert [each.entry.ser.mean for each in points] == [0.05, 0.09]


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
