"""ε over the epochs: its numbers against closed forms, its picture against what it must show."""

import csv
import math

import matplotlib.image
import numpy as np
import pytest
from support.releases import release_with

from edp_mx.dp.accounting.accountants import ACCOUNTANTS
from edp_mx.dp.accounting.bound import unbounded
from edp_mx.dp.accounting.counting import count_what_holds
from edp_mx.dp.accounting.decay import Decay
from edp_mx.dp.accounting.entries import Entry
from edp_mx.dp.accounting.events import Composition, Event
from edp_mx.dp.accounting.guarantee import guarantee
from edp_mx.dp.accounting.plan import Plan
from edp_mx.reports import epsilon_curve
from edp_mx.reports.epsilon_curve import curve_of, plot_curve
from edp_mx.reports.figures import BLUE, VERMILION


def plan(epochs, decay=None, sampler="shuffle", z=2.0, sample_rate=1.0, **changes):
    release = release_with(
        num_workers=8, micro_batch_size=8, variant="published", sampler=sampler,
        sample_rate=sample_rate,
    )  # fmt: skip
    return Plan(release, z, decay or Decay(), epochs, delta=1e-5, **changes)


def curve_of_plan(shown):
    return curve_of(shown, shown.entries())


def holds(shown):
    return count_what_holds(shown, shown.entries())


def plotted(tmp_path, points, holds):
    """The rows of the CSV, and the colours in the picture."""
    path = tmp_path / "epsilon.png"
    plot_curve(points, delta=1e-5, holds=holds, path=path)
    rows = list(csv.DictReader(path.with_suffix(".csv").open()))
    pixels = (matplotlib.image.imread(path)[..., :3] * 255).round().astype(int).reshape(-1, 3)
    return rows, {tuple(colour) for colour in np.unique(pixels, axis=0).tolist()}


def rgb(colour):
    return tuple(int(colour[i : i + 2], 16) for i in (1, 3, 5))


def test_the_points_are_the_closed_forms():
    points = curve_of_plan(plan(7, Decay("exponential", 0.3)))
    assert [point.epochs for point in points] == list(range(1, 8))
    for point in points:
        rho = sum(math.exp(0.6 * t) for t in range(point.epochs)) / 8
        expected = rho + 2 * math.sqrt(rho * math.log(1e5))
        assert point.as_published.value == pytest.approx(expected, rel=1e-12)
        mu, epsilon = math.sqrt(2 * 32 * rho), point.holds.value
        tail = math.erfc((epsilon / mu - mu / 2) / math.sqrt(2)) / 2
        less = math.exp(epsilon) * math.erfc((epsilon / mu + mu / 2) / math.sqrt(2)) / 2
        if epsilon < 600:
            assert tail - less == pytest.approx(1e-5, rel=1e-6)


def test_poisson_points_are_the_accountant_s():
    drawn = plan(20, sampler="poisson", steps_per_epoch=10, sample_rate=0.1, z=30.0)
    points = curve_of_plan(drawn)
    assert len(points) == 16 and (points[0].epochs, points[-1].epochs) == (1, 20)
    for point in (points[0], points[7], points[-1]):
        steps = [Event("poisson", 30 / (2 * math.sqrt(8)), 10 * point.epochs, 0.1)]
        expected = ACCOUNTANTS["poisson_pld"].count(
            Composition("replace_in_mean", steps), delta=1e-5
        )
        assert point.holds.value == pytest.approx(expected.epsilon.value, rel=1e-9)


def test_what_the_scales_cost_is_in_the_first_point():
    scales = Entry("layer scales", Event("shuffle", 10.0))
    epochs = [Entry(f"epoch {t}", Event("shuffle", 4.0), 4.0) for t in range(3)]
    points = curve_of(plan(3), [scales, *epochs])
    assert [point.epochs for point in points] == [1, 2, 3]
    events = Composition("replace_one", [scales.event, epochs[0].event])
    assert points[0].holds == ACCOUNTANTS["rf_exact"].count(events, delta=1e-5).epsilon
    assert curve_of(plan(3), [scales]) == []


@pytest.mark.parametrize(
    "shown", [plan(9, Decay("linear", 0.5), z=0.5), plan(19, Decay("exponential", 0.5), z=1.0)]
)
def test_both_curves_are_in_the_picture_and_in_its_numbers(tmp_path, shown):
    points = curve_of_plan(shown)
    rows, colours = plotted(tmp_path, points, holds(shown))
    assert {rgb(BLUE), rgb(VERMILION)} <= colours
    assert [int(row["epochs"]) for row in rows] == [point.epochs for point in points]
    for row, point in zip(rows, points):
        assert float(row["log10_as_published"]) == point.as_published.log10
        assert float(row["log10_that_holds"]) == point.holds.log10
        assert row["that_holds"] == ("" if point.holds.value is None else str(point.holds.value))
        assert point.holds.value is not None


def test_beyond_a_double_the_logarithm_is_drawn(tmp_path):
    """ε as published; from the epoch on whose noise float32 cannot add none holds."""
    shown = plan(1000, Decay("exponential", 0.5), z=0.1)
    points = curve_of_plan(shown)
    rows, colours = plotted(tmp_path, points, unbounded("the noise becomes too small"))
    assert rgb(BLUE) in colours and rgb(VERMILION) not in colours
    assert rows[-1]["as_published"] == rows[-1]["that_holds"] == rows[-1]["log10_that_holds"] == ""
    assert float(rows[-1]["log10_as_published"]) == points[-1].as_published.log10 > 300
    # z_t / 8 of C against 2^-19: t = 17 is the last above
    short = curve_of_plan(plan(30, Decay("exponential", 0.5), z=0.1))
    assert [p.epochs for p in short if not p.holds.is_infinite] == list(range(1, 19))


def repeated():
    """A run of Poisson steps with DP-SGD whose second epoch was interrupted and repeated."""
    release = release_with(
        unit="utterance", num_workers=1, micro_batch_size=16, adjacency="zero_out",
        sampler="poisson", sample_rate=0.05,
    )  # fmt: skip
    drawn = Plan(release, 0.9, Decay(), 6, delta=1e-5, steps_per_epoch=20)
    entries = [*drawn.entries()[:2], *drawn.entries()[1:]]
    return drawn, entries


def test_the_curve_ends_where_the_run_s_own_report_does_at_the_last_epoch():
    drawn, entries = repeated()
    points, told = curve_of(drawn, entries), guarantee(drawn, entries)
    assert [point.epochs for point in points] == [1, 2, 3, 4, 5, 6]
    assert points[-1].as_published == told.as_published.epsilon
    assert points[-1].holds == told.holds.epsilon
    assert points[1].holds == count_what_holds(drawn, entries[:3]).epsilon


def test_what_holds_is_the_thicker_line_and_the_run_is_named(tmp_path, monkeypatch):
    shown, drawn = plan(9, Decay("linear", 0.5), z=0.5), []
    monkeypatch.setattr(epsilon_curve, "save_figure", lambda figure, _: drawn.append(figure))
    plot_curve(
        curve_of_plan(shown), delta=1e-5, holds=holds(shown), path=tmp_path / "e.png", name="mine"
    )
    (axes,) = drawn[0].axes
    held, published = axes.lines
    assert held.get_label().startswith("ε that holds")
    assert held.get_linewidth() > 2 * published.get_linewidth()
    assert axes.get_title().startswith("mine\n")
