"""Loss and validation scores over the epochs: a picture and its numbers."""

from __future__ import annotations

import csv
import io
from typing import Any, Dict, List

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.files import whole_file, write_text

# Okabe–Ito: told apart by colour-blind readers too.
BLUE, VERMILION, GREEN = "#0072B2", "#D55E00", "#009E73"
PANELS = (
    ("loss (training)", (("loss", BLUE, "loss"),)),
    ("validation, %", (("ser", VERMILION, "SER"), ("intent_error", GREEN, "intent error"))),
    ("noise multiplier z_t", (("noise_multiplier", BLUE, "z_t"),)),
)


def plot_curves(run: RunDirectory) -> None:
    """Writes `curves.png` and `curves.csv` from `metrics.jsonl`."""
    rows = run.epochs()
    write_text(run.path / "curves.csv", _as_csv(rows))
    panels = [
        panel for panel in PANELS if any(key in row for row in rows for key, _, _ in panel[1])
    ]
    figure = Figure(figsize=(4.2 * len(panels), 3.2), layout="constrained")
    FigureCanvasAgg(figure)
    for axes, (title, lines) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels):
        for key, colour, label in lines:
            points = [(row["epoch"] + 1, row[key]) for row in rows if row.get(key) is not None]
            if points:
                axes.plot(*zip(*points), color=colour, label=label, marker="o", markersize=3)
        axes.set_title(title, fontsize=10)
        axes.set_xlabel("epoch")
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
        if len(lines) > 1:
            axes.legend(frameon=False, fontsize=8)
    with whole_file(run.path / "curves.png") as file:
        figure.savefig(file, format="png", dpi=120)


def _as_csv(rows: List[Dict[str, Any]]) -> str:
    columns = list(dict.fromkeys(key for row in rows for key in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
