"""Exposure of canaries by their repeats in the training part: a picture, its numbers, a page."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence

import numpy as np
from matplotlib.figure import Figure

from edp_mx.attacks.canaries.exposure import BY_CHANCE
from edp_mx.reports.attack_page import warnings_of, write_page
from edp_mx.reports.figures import BLUE, VERMILION, build_figure, label_axes, save_figure
from edp_mx.reports.panels import Picture
from edp_mx.reports.report_parts import Part, PartTable
from edp_mx.reports.table import render_table
from edp_mx.runtime.files import write_csv
from edp_mx.runtime.json_text import read_json

COLUMNS = ("repeats", "tokens", "loss", "rank", "candidates", "by_rank", "by_fit")
HEADER = ("trained on", "exposure by rank, bits", "exposure by fit, bits", "canaries")
EXPLANATION = (
    "A model was trained anew with canaries in the training part: a few random words, then a "
    "random phone number, one digit per token. The exposure of a canary (Carlini et al. 2019) "
    "compares its loss with those of the same utterance with other numbers: log2 of their number "
    "minus log2 of its rank, or, beyond what ranks show, by a distribution fitted to their losses. "
    "A canary that was never trained on has 1.44 bits on average."
)
TRAINED = "The model with canaries has {}. The exposure is that of this model, not of the run."


def exposure_rows(canaries: Sequence[Dict[str, Any]]) -> List[List[str]]:
    """Return a row per number of repeats: mean and standard deviation over the canaries."""
    rows = []
    for repeats in sorted({canary["repeats"] for canary in canaries}):
        group = [canary for canary in canaries if canary["repeats"] == repeats]
        by_rank, by_fit = ([one[key] for one in group] for key in ("by_rank", "by_fit"))
        times = "once" if repeats == 1 else f"{repeats} times"
        rows.append([times, _spread(by_rank), _spread(by_fit), str(len(group))])
    return rows


def describe_exposure(canaries: Sequence[Dict[str, Any]], facts: Dict[str, Any]) -> str:
    """Return the table, and below it how the model differs from the run."""
    return "\n".join([render_table(HEADER, exposure_rows(canaries)), *warnings_of(facts, TRAINED)])


def write_exposure_report(folder: Path) -> None:
    """Write `exposure.csv`, `exposure.png` and `report.html` from `exposure.json`."""
    value = read_json(folder / "exposure.json")
    canaries, facts = value["canaries"], value.get("facts", {})
    rows = [{**canary, "tokens": " ".join(canary["tokens"])} for canary in canaries]
    write_csv(folder / "exposure.csv", COLUMNS, ([row[key] for key in COLUMNS] for row in rows))
    figure = _plot(canaries, folder / "exposure.png")
    most, digits = np.log2(canaries[0]["candidates"] + 1), value["settings"]["digits"]
    write_page(
        folder,
        title=f"canaries in {value['run']}",
        verdict=EXPLANATION,
        success=Part(
            "Exposure",
            tables=[PartTable.of_texts("By repeats", HEADER, exposure_rows(canaries))],
            notes=[
                *warnings_of(facts, TRAINED),
                f"A rank among {canaries[0]['candidates']} candidates shows {most:.1f} bits at "
                "most; beyond that the fit extrapolates.",
                f"A number of {digits} digits has {digits * np.log2(10):.1f} bits: a canary with "
                "this exposure ranks first among all numbers.",
            ],
        ),
        pictures=Part(
            "Picture",
            pictures=[Picture.of("Each canary's exposure; the dashed line is chance", figure)],
        ),
        facts={**value["settings"], **facts},
    )


def _plot(canaries: Sequence[Dict[str, Any]], path: Path) -> Figure:
    """Draw the exposure of each canary over its repeats, and return the figure."""
    figure, (axes,) = build_figure(3.7, 3.2)
    kinds = (("by_rank", BLUE, "o", "by rank"), ("by_fit", VERMILION, "x", "by fit"))
    for key, colour, marker, label in kinds:
        points = [(one["repeats"], one[key]) for one in canaries if one[key] is not None]
        if points:
            axes.scatter(*zip(*points), color=colour, marker=marker, alpha=0.7, label=label)
    axes.axhline(BY_CHANCE, color="grey", linewidth=0.8, linestyle="--", label="chance")
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    label_axes(axes, "times in the training part", "exposure, bits")
    save_figure(figure, path)
    return figure


def _spread(values: Sequence[Optional[float]]) -> str:
    """Return mean ± standard deviation of the values that are known."""
    known = [value for value in values if value is not None]
    if not known:
        return "no fit"
    spread = f" ± {np.std(known, ddof=1):.2f}" if len(known) > 1 else ""
    return f"{np.mean(known):.2f}{spread}"
