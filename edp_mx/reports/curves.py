"""Curves of a training or a pre-training: a picture and its numbers."""

from __future__ import annotations

from typing import Callable, Dict, NamedTuple, Sequence, Tuple

from edp_mx.reports.figures import BLUE, GREEN, VERMILION, build_figure, label_axes, save_figure
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.files import write_csv


class Panel(NamedTuple):
    """One panel."""

    title: str
    lines: Tuple[Tuple[str, str, str], ...]  # key of `metrics.jsonl`, colour, label
    is_logarithmic: bool = False


TRAINING = (
    Panel("loss (training)", (("loss", BLUE, "loss"),)),
    Panel("validation, %", (("ser", VERMILION, "SER"), ("intent_error", GREEN, "intent error"))),
    Panel("noise multiplier z_t", (("noise_multiplier", BLUE, "z_t"),)),
)
PRETRAINING = (
    Panel("loss (training)", (("loss", BLUE, "loss"),)),
    Panel(
        "held-out perplexity",
        (("perplexity", VERMILION, "BERT"), ("unigram_perplexity", GREEN, "unigram")),
        is_logarithmic=True,
    ),
)


def plot_curves(run: RunDirectory) -> None:
    """Write `curves.png` and `curves.csv` of a training from `metrics.jsonl`."""
    _plot(run, TRAINING, "epoch", lambda row: row["epoch"] + 1)


def plot_pretraining(run: RunDirectory) -> None:
    """Write `curves.png` and `curves.csv` of a pre-training from `metrics.jsonl`."""
    _plot(run, PRETRAINING, "step", lambda row: row["step"])


def _plot(
    run: RunDirectory, panels: Sequence[Panel], x: str, place: Callable[[Dict], float]
) -> None:
    """Draw the panels for which there are numbers."""
    rows = run.epochs()
    columns = list(dict.fromkeys(key for row in rows for key in row))
    write_csv(
        run.path / "curves.csv", columns, ([row.get(key, "") for key in columns] for row in rows)
    )
    panels = [panel for panel in panels if any(key in columns for key, _, _ in panel.lines)]
    figure, places = build_figure(4.2 * len(panels), 3.2, columns=len(panels))
    for axes, panel in zip(places, panels):
        for key, colour, label in panel.lines:
            points = [(place(row), row[key]) for row in rows if row.get(key) is not None]
            if points:
                marker = "o" if len(points) < 50 else None
                axes.plot(*zip(*points), color=colour, label=label, marker=marker, markersize=3)
        if panel.is_logarithmic:
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0)
        label_axes(axes, x, title=panel.title, legend=len(panel.lines) > 1)
    save_figure(figure, run.path / "curves.png")
