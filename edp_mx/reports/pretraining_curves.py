"""Loss and held-out perplexity over the steps of a pre-training: a picture and its numbers."""

from __future__ import annotations

import csv
import io
from typing import Any, Dict, List

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from edp_mx.reports.curves import BLUE, GREEN, VERMILION
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.files import whole_file, write_text


def plot_pretraining(run: RunDirectory) -> None:
    """Writes `curves.png` and `curves.csv` from `metrics.jsonl`."""
    rows = run.epochs()
    columns = list(dict.fromkeys(key for row in rows for key in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="")
    writer.writeheader()
    writer.writerows(rows)
    write_text(run.path / "curves.csv", text.getvalue())
    figure = Figure(figsize=(8.4, 3.2), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    _line(left, rows, "loss", BLUE)
    left.set_title("loss (training)", fontsize=10)
    _line(right, rows, "perplexity", VERMILION)
    _line(right, rows, "unigram_perplexity", GREEN)
    right.set_title("held-out perplexity", fontsize=10)
    right.set_yscale("log")
    right.legend(["BERT", "unigram"], frameon=False, fontsize=8)
    for axes in (left, right):
        axes.set_xlabel("step")
        axes.grid(alpha=0.3)
    with whole_file(run.path / "curves.png") as file:
        figure.savefig(file, format="png", dpi=120)


def _line(axes: Axes, rows: List[Dict[str, Any]], key: str, colour: str) -> None:
    """One value over the steps."""
    points = [(row["step"], row[key]) for row in rows if row.get(key) is not None]
    axes.plot(*zip(*points), color=colour, marker="o" if len(points) < 50 else None, markersize=3)
