"""Curves of a training: a picture and its numbers."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from edp_mx.reports.figures import (
    BLUE,
    GREEN,
    MOST_COLUMNS,
    VERMILION,
    build_panels,
    label_axes,
    save_figure,
)
from edp_mx.reports.panels import Picture
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.files import write_csv


class Line(NamedTuple):
    """A curve: its key in `metrics.jsonl`, its colour and its name."""

    key: str
    colour: str
    label: str = ""


class Panel(NamedTuple):
    """One panel; the first of its lines is the thickest.

    Attributes:
        may_be_log: whether the y-axis is logarithmic where the numbers span 30 times or more.
    """

    title: str
    lines: Tuple[Line, ...]
    may_be_log: bool = False
    factor: float = 1.0


LOSS = Panel("loss (training)", (Line("loss", BLUE),))
PRIVACY = (
    Panel(
        "ε so far",
        (
            Line("epsilon_holds", VERMILION, "that holds"),
            Line("epsilon_holds_if", GREEN, "that holds on conditions"),
            Line("epsilon_as_published", BLUE, "as published"),
        ),
        may_be_log=True,
    ),
    Panel("clipped gradients, %", (Line("clipped_fraction", BLUE),), factor=100.0),
    Panel("noise multiplier z_t", (Line("noise_multiplier", BLUE),)),
)
MARKERS = ("o", "s", "^")
STEEP = 30.0


def plot_curves(run: RunDirectory) -> None:
    """Write `curves.png` and `curves.csv` of a training from `metrics.jsonl`."""
    rows = run.epochs()
    columns = list(dict.fromkeys(key for row in rows for key in row))
    write_csv(
        run.path / "curves.csv", columns, ([row.get(key, "") for key in columns] for row in rows)
    )
    panels = _panels_with(rows, run)
    if not panels:
        return
    figure = _figure(panels, rows)
    figure.suptitle(run.path.resolve().name, fontsize=10)
    save_figure(figure, run.path / "curves.png")


def pictures_of_curves(run: RunDirectory) -> List[Picture]:
    """Return the curves of a training for a page, none where its budget permitted no epoch."""
    rows = run.epochs()
    panels = _panels_with(rows, run)
    return [Picture.of("By epoch", _figure(panels, rows, columns=1))] if panels else []


def _panels_with(rows: Sequence[Dict[str, Any]], run: RunDirectory) -> List[Panel]:
    """The panels of a training for which there are numbers, with the scores of its task."""
    metrics = run.task.metrics
    errors = [
        Panel(f"validation {each.title}", (Line(each.key, VERMILION),))
        for each in metrics
        if each.is_error
    ]
    right = [each for each in metrics if not each.is_error]
    lines = tuple(Line(each.key, colour, each.name) for each, colour in zip(right, (GREEN, BLUE)))
    known = {key for row in rows for key, value in row.items() if value is not None}
    panels = [LOSS, *errors, Panel("right on validation, %", lines), *PRIVACY]
    return [panel for panel in panels if any(line.key in known for line in panel.lines)]


def _figure(
    panels: Sequence[Panel], rows: Sequence[Dict[str, Any]], columns: int = MOST_COLUMNS
) -> Figure:
    figure, places = build_panels(len(panels), 3.8, 2.9, columns=columns)
    for axes, panel in zip(places, panels):
        _draw(axes, panel, rows)
    return figure


def _draw(axes: Axes, panel: Panel, rows: Sequence[Dict[str, Any]]) -> None:
    """Draw the lines of a panel that have numbers, equal ones once."""
    drawn: List[List[Tuple[float, float]]] = []
    for line, marker in zip(panel.lines, MARKERS):
        found = [(row["epoch"], row.get(line.key)) for row in rows]
        points = [(place, panel.factor * value) for place, value in found if value is not None]
        if points and points not in drawn:
            axes.plot(
                *zip(*points),
                color=line.colour,
                label=line.label,
                marker=marker if len(points) < 50 else None,
                markersize=3,
                linewidth=1.2 if drawn else 2.2,
            )
            drawn.append(points)
    values = [value for points in drawn for _, value in points]
    if panel.may_be_log and min(values) > 0 and max(values) > STEEP * min(values):
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    label_axes(axes, "epoch", title=panel.title, legend=any(line.label for line in panel.lines))
