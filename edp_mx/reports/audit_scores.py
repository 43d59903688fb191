"""Scores of the canaries of a one-run audit: a picture and its numbers."""

from __future__ import annotations

import csv
import io

import numpy as np

from edp_mx.errors import UserError
from edp_mx.reports.figures import build_figure, draw_histograms, label_axes, save_figure
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.files import write_csv


def plot_scores(run: RunDirectory) -> None:
    """Write `scores.png` and `scores.csv` from `canaries.csv`, without scores that are infinite."""
    path = run.path / "canaries.csv"
    try:
        rows = list(csv.DictReader(io.StringIO(path.read_text("utf-8"))))
        scores = np.array([float(row["score"]) for row in rows])  # (m,)
        members = np.array([row["is_member"] == "1" for row in rows])  # (m,)
    except (OSError, KeyError, ValueError) as error:
        raise UserError(f"cannot read {path}: {error}") from error
    is_finite = np.isfinite(scores)
    figure, (axes,) = build_figure(5.0, 3.2)
    labels = ("trained on", "left out")
    bins = draw_histograms(axes, scores[is_finite], members[is_finite], labels)
    write_csv(run.path / "scores.csv", ["from", "to", "members", "non_members"], bins)
    label_axes(axes, "score: fall of the loss", "canaries", title="scores of the canaries")
    save_figure(figure, run.path / "scores.png")
