"""The picture of a sweep says of each trial what it set and what it came to."""

import pytest

from edp_mx.reports.sweep_results import Point, plot_sweep


def trial(ser, **values):
    return Point(values, ser)


def drawn(axes):
    """The points of a panel by their name in the legend; a line of the legend is none."""
    return {line.get_label(): list(zip(*line.get_data())) for line in axes.lines}


def test_each_setting_that_differs_has_a_panel_and_the_best_a_ring():
    first = [trial(0.3, z=1e-4, c=1.0, epochs=4), trial(0.2, z=1e-2, c=1.0, epochs=4)]
    (axes,) = plot_sweep([*first, trial(0.1, z=1e-4, c=1.0, epochs=20)], rung="epochs").axes
    assert axes.get_xlabel() == "z" and axes.get_xscale() == "log"
    points = drawn(axes)
    assert points["epochs = 4"] == [(1e-4, 30.0), (1e-2, 20.0)]
    assert points["epochs = 20"] == points["the best"] == [(1e-4, 10.0)]


def test_texts_have_a_place_each_and_near_numbers_a_linear_axis():
    trials = [
        trial(0.3, d="none", rate=2),
        trial(0.2, d="linear", rate=3),
        trial(0.25, d=None, rate=2),
    ]
    text, number = plot_sweep(trials).axes
    assert number.get_xscale() == "linear"
    names = [label.get_text() for label in text.get_xticklabels()]
    assert sorted(names) == ["", "linear", "none"]
    places = {names[int(x)]: y for x, y in drawn(text)["a trial"]}
    assert places == pytest.approx({"none": 30, "linear": 20, "": 25})


@pytest.mark.parametrize("trials", [[], [trial(0.1, a=1)], [trial(0.1, a=1), trial(0.2, a=1)]])
def test_what_shows_no_difference_is_not_drawn(trials):
    assert plot_sweep(trials) is None
