"""Plots from records: the pictures show what the tables say, and the tables what was measured."""

from itertools import product

import matplotlib.image
import numpy as np
import pytest
from support.commands import ROOT, edp_mx
from support.records import kept, record_of

from edp_mx.reports.figures import BLUE, VERMILION
from edp_mx.reports.rate_map import plot_by_batch_and_rate
from edp_mx.reports.ser_plots import plot_by_epsilon, plot_by_utterances
from edp_mx.runs.measurements import chosen, measurements


def rows(plot):
    """The cells of the table, stripped."""
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in table(plot)[2:]]


def table(plot):
    return [line for line in plot.table.splitlines() if line.startswith("|")]


def best_of(*records):
    return chosen(measurements(records))


def curves(axes):
    """The lines through several measurements, without bars and marks."""
    lines = (line for line in axes.lines if line.get_marker() in "os*")
    return [line for line in lines if len(line.get_xdata()) > 1]


def by_epsilon():
    return [
        *(record_of(epsilon=e, ser=s) for e, s in ((1.0, 0.6), (3.0, 0.5), (8.0, 0.4))),
        record_of(epsilon=8.0, ser=0.2, **{"training.seed": 1}),
        record_of(family="clc", epsilon=8.0, ser=0.7),
        record_of(mechanism="none", ser=0.1),
    ]


def test_infinity_has_a_place_of_its_own_behind_the_largest_epsilon():
    (axes,) = plot_by_epsilon(best_of(*by_epsilon())).figure.axes
    names = [label.get_text() for label in axes.get_xticklabels()]
    places = dict(zip(names, axes.get_xticks()))
    assert names == ["1", "3", "8", "∞"] and places["∞"] > places["8"] + 0.2
    (line,) = (line for line in curves(axes) if line.get_ydata()[0] == pytest.approx(60))
    assert list(line.get_ydata()) == pytest.approx([60, 50, 30])  # the last a mean over two seeds
    assert list(line.get_xdata()) == [places[name] for name in ("1", "3", "8")]
    colours = {line.get_color() for line in axes.lines}
    assert {VERMILION, BLUE} <= colours
    baseline = [line for line in axes.lines if list(line.get_ydata()) == pytest.approx([10, 10])]
    assert baseline and axes.get_ylim()[0] == 0 and axes.get_ylim()[1] > 70


def test_the_table_has_the_mean_and_the_range_over_seeds():
    found = {tuple(row[:4]): row[4:] for row in rows(plot_by_epsilon(best_of(*by_epsilon())))}
    assert found["atis", "bert", "DP-SGD", "8"] == ["1,000", "30.0", "20.0–40.0", "85.0", "70.0",
                                                    "2"]  # fmt: skip
    assert found["atis", "bert", "no privacy", "∞"][1:3] == ["10.0", ""]
    assert len(found) == 5


def test_a_corpus_of_several_sizes_is_shown_at_the_one_with_most_epsilons():
    few = [record_of(n=n, epsilon=e) for n, e in ((9000, 8.0), (500, 3.0), (500, 8.0), (700, 3.0))]
    plot = plot_by_epsilon(best_of(*few))
    assert {row[4] for row in rows(plot)} == {"500"}
    assert plot.figure.axes[0].get_title() == "atis, n = 500"


def test_against_the_number_of_utterances_each_epsilon_has_a_panel():
    records = [
        record_of(n=n, epsilon=e, ser=100 / n / e, corpus=corpus)
        for n, e, corpus in product((100, 1000, 10_000), (1.0, 3.0, 8.0), ("atis", "dstc8"))
    ]
    plot = plot_by_utterances(best_of(*records, record_of(corpus="snips", epsilon=1.0)))
    assert [axes.get_title()[:11] for axes in plot.figure.axes] == ["BERT, ε = 3", "BERT, ε = 8"]
    assert {row[3] for row in rows(plot)} == {"3", "8"}
    for line in curves(plot.figure.axes[1]):
        assert list(line.get_xdata()) == [100, 1000, 10_000]
        assert list(line.get_ydata()) == pytest.approx([100 / 8, 10 / 8, 1 / 8])
    assert plot_by_utterances(best_of(record_of(epsilon=1.0))) is None


def test_a_cell_of_the_map_is_the_best_on_validation_of_what_was_tried():
    def tried(batch, rate, validation, **more):
        settings = {"training.batch_size": batch, "training.learning_rate": rate, **more}
        return record_of(ser=0.01, validation=validation, **settings)

    grid = [tried(64, 0.01, 0.5), tried(64, 0.02, 0.4), tried(128, 0.0101, 0.3),
            tried(128, 0.01, 0.2, **{"privacy.max_grad_norm": 0.5})]  # fmt: skip
    plot = plot_by_batch_and_rate(measurements(grid))
    axes = plot.figure.axes[0]
    shown = np.ma.filled(axes.images[0].get_array(), np.nan)
    assert np.allclose(shown, [[50, 40], [20, np.nan]], equal_nan=True)
    cells = [" ".join(row[6:]) for row in rows(plot)]
    assert cells == ["64 0.01 50.0 1", "64 0.02 40.0 1", "128 0.01 20.0 2"]
    assert plot_by_batch_and_rate(measurements(grid[:2])) is None  # one batch size
    assert plot_by_batch_and_rate(measurements(grid[1:3])) is None  # both differ: of other models


def test_pictures_and_pages_of_the_committed_records(tmp_path):
    said = edp_mx("runs", "plot", ROOT / "results", "--out", tmp_path).stdout
    assert "ser_by_epsilon.png" in said
    page = (tmp_path / "ser_by_epsilon.md").read_text()
    assert "](ser_by_epsilon.png)" in page and "| snips " in page
    pixels = matplotlib.image.imread(tmp_path / "ser_by_epsilon.png")[..., :3].reshape(-1, 3)
    vermilion = np.array([0xD5, 0x5E, 0x00]) / 255
    assert (np.abs(pixels - vermilion).max(axis=1) < 0.01).sum() > 100


def test_what_cannot_be_drawn_is_said(tmp_path):
    records = kept(tmp_path / "records", [record_of(epsilon=1.0)])
    said = edp_mx("runs", "plot", records, "--out", tmp_path / "out").stdout.splitlines()
    assert [line.split(" is not drawn: it needs ")[0] for line in said[1:]] == [
        "ser_by_utterances", "batch_and_rate"]  # fmt: skip
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "ser_by_epsilon.png", "ser_by_epsilon.md"}  # fmt: skip
    free = kept(tmp_path / "free", [record_of(mechanism="none")])
    refused = edp_mx("runs", "plot", free, "--out", tmp_path / "none", code=2).stderr
    assert (
        "none of the 1 records found can be drawn" in refused and not (tmp_path / "none").exists()
    )
    assert "name a folder" in edp_mx("runs", "plot", records, code=2).stderr
    for wrong, owner in ((["--out", tmp_path], "plot"), (["--into", tmp_path], "keep")):
        assert f"belongs to `edp-mx runs {owner}`" in edp_mx("runs", *wrong, code=2).stderr
