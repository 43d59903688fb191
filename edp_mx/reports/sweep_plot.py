"""A picture of a sweep: the SER on validation against each setting that differs."""

from __future__ import annotations

from typing import Any, List, Optional, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from edp_mx.reports.figures import COLOURS, build_panels, label_axes
from edp_mx.reports.sweep_table import text_of, varied
from edp_mx.runs.sweep.trial import Trial

_MARKERS = "osD^vPX"
_LOG_FROM = 100.0  # a setting whose values span so large a factor has a logarithmic axis


def plot_sweep(trials: Sequence[Trial], *, rung: Optional[str] = None) -> Optional[Figure]:
    """Return a panel for each setting that differs; None where fewer than two trials are trained.

    A ring marks the best trial.

    Args:
        rung: the setting that grows from rung to rung, which the colours tell; None without rungs.
    """
    scored = sorted((t for t in trials if t.ser is not None), key=lambda trial: trial.ser or 0.0)
    keys = [key for key in varied(scored) if key != rung]
    if len(scored) < 2 or not keys:
        return None
    rungs = sorted({trial.values[rung] for trial in scored}) if rung else [None]
    figure, places = build_panels(len(keys), 4.2, 3.4, share_y=True)
    for axes, key in zip(places, keys):
        place = _axis(axes, [trial.values[key] for trial in scored])
        for i, each in enumerate(rungs):
            of_it = [t for t in scored if rung is None or t.values[rung] == each]
            axes.plot(
                [place(t.values[key]) for t in of_it],
                [100 * (t.ser or 0.0) for t in of_it],
                linestyle="",
                marker=_MARKERS[i % len(_MARKERS)],
                color=COLOURS[i % len(COLOURS)],
                alpha=0.7,
                label=f"{rung} = {each}" if rung else None,
            )
        best = scored[0]
        axes.plot(place(best.values[key]), 100 * (best.ser or 0.0), linestyle="", marker="o",
                  markersize=13, markerfacecolor="none", color="0.3", label="the best")  # fmt: skip
        label_axes(axes, key, "validation SER, %" if axes is places[0] else "",
                   legend=axes is places[0] and rung is not None)  # fmt: skip
    return figure


def _axis(axes: Axes, values: List[Any]) -> Any:
    """Set up the axis of a setting; return where a value stands on it."""
    if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values):
        if min(values) > 0 and max(values) >= _LOG_FROM * min(values):
            axes.set_xscale("log")
        return lambda value: value
    names = sorted(set(map(text_of, values)))
    axes.set_xticks(range(len(names)), names)
    return lambda value: names.index(text_of(value))
