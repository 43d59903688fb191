"""Batch size × learning rate: the SER on validation that each pair came to."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np

from edp_mx.reports.figures import build_panels, label_axes
from edp_mx.reports.ser_plots import STYLES, Plot, number_of
from edp_mx.reports.table import render_table
from edp_mx.runs.measurements import Measurement
from edp_mx.runs.records import value_of

HEADER = ("corpus", "family", "mechanism", "ε", "n", "trained", "batch", "rate", "valid. SER %",
          "settings")  # fmt: skip
COLOUR_MAP = "cividis"  # the same to colour-blind readers

Cells = Dict[Tuple[int, float], List[float]]  # (batch size, rate): validation SER of each setting


def plot_by_batch_and_rate(measured: Sequence[Measurement]) -> Optional[Plot]:
    """Return a map for each condition with a grid of sizes and rates; None where there is none.

    A cell is the best over the other settings that were tried with its pair, by the SER on
    validation, which is what a choice may look at. Rates are rounded to one digit.
    """
    maps: Dict[Tuple[Any, ...], Cells] = defaultdict(lambda: defaultdict(list))
    for each in measured:
        if math.isfinite(each.validation):
            trained = value_of(each.records[0], "model.trained") or "all"
            pair = each.batch_size, float(f"{each.learning_rate:.0e}")
            key = (*each.condition, trained)
            maps[key][pair].append(each.validation)
    maps = {key: cells for key, cells in maps.items() if _is_map(cells)}
    if not maps:
        return None
    figure, places = build_panels(len(maps), 4.6, 3.6)
    for axes, (key, cells) in zip(places, maps.items()):
        batches, rates, values = _grid(cells)
        axes.grid(False)
        axes.set_facecolor("0.9")
        picture = axes.imshow(values, cmap=COLOUR_MAP, origin="lower", aspect="auto")
        for (row, column), value in np.ndenumerate(values):
            if math.isfinite(value):
                is_dark = picture.norm(value) < 0.5
                axes.text(column, row, f"{value:.1f}", ha="center", va="center", fontsize=8,
                          color="white" if is_dark else "black")  # fmt: skip
        axes.set_xticks(range(len(rates)), [f"{rate:g}" for rate in rates])
        axes.set_yticks(range(len(batches)), [f"{batch:,}" for batch in batches])
        figure.colorbar(picture, ax=axes, label="validation SER, %")
        title = _title(*key)
        label_axes(axes, "learning rate", "batch, utterances", title=title, legend=False)
    return Plot(figure, _table(maps))


def _is_map(cells: Cells) -> bool:
    """Whether some rate was tried with two sizes, and some size with two rates."""
    return all(max(Counter(pair[i] for pair in cells).values()) > 1 for i in (0, 1))


def _grid(cells: Cells) -> Tuple[List[int], List[float], np.ndarray]:
    """Return the sizes (B,), the rates (R,) and the least SER of each pair in % (B, R), or NaN."""
    batches = sorted({batch for batch, _ in cells})
    rates = sorted({rate for _, rate in cells})
    values = np.full((len(batches), len(rates)), np.nan)
    for (batch, rate), found in cells.items():
        values[batches.index(batch), rates.index(rate)] = 100 * min(found)
    return batches, rates, values


def _title(corpus: str, family: str, mechanism: str, n: int, epsilon: float, trained: str) -> str:
    run = f"{STYLES[mechanism].name}, ε = {number_of(epsilon)}"
    return f"{corpus}, n = {n:,}, {family.upper()} ({trained}),\n{run}"


def _table(maps: Dict[Tuple[Any, ...], Cells]) -> str:
    rows = []
    for (corpus, family, mechanism, n, epsilon, trained), cells in maps.items():
        start = [corpus, family, STYLES[mechanism].name]
        start += [number_of(epsilon), f"{n:,}", trained]
        for (batch, rate), found in sorted(cells.items()):
            numbers = [f"{batch:,}", f"{rate:g}", f"{100 * min(found):.1f}", str(len(found))]
            rows.append([*start, *numbers])
    return render_table(HEADER, rows)
