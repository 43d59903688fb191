"""Exposure of canaries by how often they were trained on: a picture, its numbers, a page."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from edp_mx.attacks.canaries.exposure import BY_CHANCE
from edp_mx.reports.attack_page import warnings_of, write_page
from edp_mx.reports.attack_pictures import save, write_csv
from edp_mx.reports.curves import BLUE, VERMILION
from edp_mx.reports.table import render_table
from edp_mx.runtime.files import read_json

COLUMNS = ("repeats", "tokens", "loss", "rank", "candidates", "by_rank", "by_fit")
HEADER = ("trained on", "exposure by rank, bits", "exposure by fit, bits", "canaries")
EXPLANATION = (
    "A model was trained anew with canaries in the training part: a few random words, then a "
    "random phone number, one digit a token. A canary's exposure (Carlini et al. 2019) is how far "
    "its loss stands out among those of the same utterance with other numbers: log2 of their "
    "number minus log2 of its rank, or, beyond what ranks show, by a distribution fitted to their "
    "losses. A canary that was never trained on has 1.44 bits on average."
)
TRAINED = "The model with canaries has {}. What they show is its exposure, not the run's."


def exposure_rows(canaries: Sequence[Dict[str, Any]]) -> List[List[str]]:
    """A row for each number of repeats, for `HEADER`: mean and standard deviation over canaries."""
    rows = []
    for repeats in sorted({canary["repeats"] for canary in canaries}):
        group = [canary for canary in canaries if canary["repeats"] == repeats]
        by_rank, by_fit = ([one[key] for one in group] for key in ("by_rank", "by_fit"))
        times = "once" if repeats == 1 else f"{repeats} times"
        rows.append([times, spread_of(by_rank), spread_of(by_fit), str(len(group))])
    return rows


def say_exposure(canaries: Sequence[Dict[str, Any]], facts: Dict[str, Any]) -> str:
    """The table, and below it what the model has other than the run."""
    return "\n".join([render_table(HEADER, exposure_rows(canaries)), *warnings_of(facts, TRAINED)])


def write_exposure_report(folder: Path) -> None:
    """Writes `exposure.csv`, `exposure.png` and `report.html` from `exposure.json`.

    Raises:
        UserError: it is missing or torn.
    """
    value = read_json(folder / "exposure.json")
    canaries, facts = value["canaries"], value.get("facts", {})
    rows = [{**canary, "tokens": " ".join(canary["tokens"])} for canary in canaries]
    write_csv(folder / "exposure.csv", COLUMNS, ([row[key] for key in COLUMNS] for row in rows))
    _plot(canaries, folder / "exposure.png")
    most, digits = np.log2(canaries[0]["candidates"] + 1), value["settings"]["digits"]
    write_page(
        folder,
        title=f"canaries in {value['run']}",
        explanation=EXPLANATION,
        header=list(HEADER),
        rows=exposure_rows(canaries),
        notes=[
            *warnings_of(facts, TRAINED),
            f"A rank among {canaries[0]['candidates']} candidates shows {most:.1f} bits at most; "
            "the fit extrapolates, and is a guess beyond them.",
            f"A number of {digits} digits has {digits * np.log2(10):.1f} bits: a canary that is so "
            "exposed comes first of all.",
        ],
        pictures={"exposure": "Each canary's exposure; the dashed line is chance."},
        facts={**value["settings"], **facts},
    )


def _plot(canaries: Sequence[Dict[str, Any]], path: Path) -> None:
    figure = Figure(figsize=(5.0, 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    kinds = (("by_rank", BLUE, "o", "by rank"), ("by_fit", VERMILION, "x", "by fit"))
    for key, colour, marker, label in kinds:
        points = [(one["repeats"], one[key]) for one in canaries if one[key] is not None]
        if points:
            axes.scatter(*zip(*points), color=colour, marker=marker, alpha=0.7, label=label)
    axes.axhline(BY_CHANCE, color="grey", linewidth=0.8, linestyle="--", label="chance")
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("times in the training part")
    axes.set_ylabel("exposure, bits")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize=8)
    save(figure, path)


def spread_of(values: Sequence[Optional[float]]) -> str:
    """Mean ± standard deviation of what there is."""
    known = [value for value in values if value is not None]
    if not known:
        return "not to be fitted"
    spread = f" ± {np.std(known, ddof=1):.2f}" if len(known) > 1 else ""
    return f"{np.mean(known):.2f}{spread}"
