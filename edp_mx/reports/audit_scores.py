"""The scores of the canaries of a one-run audit: a picture and its numbers."""

from __future__ import annotations

import csv
import io

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from edp_mx.errors import UserError
from edp_mx.reports.curves import BLUE, VERMILION
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.files import whole_file, write_text

BINS = 40


def plot_scores(run: RunDirectory) -> None:
    """Writes `scores.png` and `scores.csv` from `canaries.csv`.

    Raises:
        UserError: it is missing or not ours.

    Edge cases: scores that are not finite are left out.
    """
    try:
        rows = list(csv.DictReader(io.StringIO((run.path / "canaries.csv").read_text("utf-8"))))
        scores = np.array([float(row["score"]) for row in rows])  # (m,)
        members = np.array([row["is_member"] == "1" for row in rows])  # (m,)
    except (OSError, KeyError, ValueError) as error:
        raise UserError(f"cannot read {run.path / 'canaries.csv'}: {error}") from error
    is_finite = np.isfinite(scores)
    scores, members = scores[is_finite], members[is_finite]
    edges = np.histogram_bin_edges(scores, BINS)
    counts = [np.histogram(scores[part], edges)[0] for part in (members, ~members)]
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["from", "to", "members", "non_members"])
    writer.writerows(zip(edges[:-1], edges[1:], *counts))
    write_text(run.path / "scores.csv", text.getvalue())

    figure = Figure(figsize=(5.0, 3.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    for count, colour, label in zip(counts, (VERMILION, BLUE), ("trained on", "left out")):
        axes.stairs(count, edges, color=colour, fill=True, alpha=0.5, label=label)
    axes.set_xlabel("score: fall of the loss")
    axes.set_ylabel("canaries")
    axes.set_title("can the canaries be told apart?", fontsize=10)
    axes.legend(frameon=False, fontsize=8)
    axes.grid(alpha=0.3)
    with whole_file(run.path / "scores.png") as file:
        figure.savefig(file, format="png", dpi=120)
