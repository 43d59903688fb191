"""The settings of Table 1 within the paper's grids, and the cost of choosing by them."""

from __future__ import annotations

import math
from typing import Dict, List, Mapping, Optional, Sequence

import numpy as np

from edp_mx.dp.accounting.lognumber import LogNumber
from edp_mx.dp.accounting.zcdp import log_epsilon_simple
from edp_mx.reports.panels import Picture
from edp_mx.reports.report_parts import Part, PartTable
from edp_mx.reports.sweep_results import Point, plot_sweep
from edp_mx.runs.file_types import Record
from edp_mx.runs.measurements import spread_of
from edp_mx.runs.record import validation_cost
from edp_mx.runs.records import value_of
from experiments.pages.table1 import in_percent
from experiments.tables.methods import METHODS, method_of
from experiments.tables.paper import name_of
from experiments.tables.paper_point import log_rho_simple
from experiments.tables.query import Entry, Key, but_for_privacy

TITLE = "The choice of settings"
EXPLANATION = (
    "The paper chose C, z₀ and τ from grids, and does not say what it chose. Here stand the trials "
    "of such grids, and Table 1's settings beside the best of those that trained for as many "
    "epochs. A choice costs privacy: all trials are trained on the same part, so that what they "
    "spend adds up. The last columns have log₁₀ ε for one run of Table 1 and for all trials "
    "together, both as the paper counts; a trial that failed after it had spent, or was repeated, "
    "leaves no record and comes on top. No ε covers the validation part, on which the best is "
    "found."
)
HEADER = ("corpus", "model", "method", "trials", "the best", "its valid. SER %", "Table 1's",
          "valid. SER %", "log₁₀ ε of one", "log₁₀ ε of all trials")  # fmt: skip
RUNG = "training.epochs"
_CHOSEN = {"C": "privacy.max_grad_norm", "z₀": "privacy.noise_multiplier",
           "τ": "privacy.decay.rate"}  # fmt: skip


def choice_of_settings(
    trials: Sequence[Record], entries: Mapping[Key, Entry], *, has_pictures: bool = False
) -> List[Part]:
    """Return the part about the grids of Table 1's eDP-SGD; none without trials.

    A grid counts where its longest trials have all settings but those of privacy from Table 1.

    Args:
        trials: records of grids, of any number of corpora, families and methods.
        entries: of Table 1.
        has_pictures: with the SER on validation against each setting of a grid.
    """
    grids: Dict[Key, List[Record]] = {}
    for record in (each for each in trials if math.isfinite(validation_cost(each))):
        method = method_of(record)
        if method and METHODS[method].decay:
            grids.setdefault((record.family, record.corpus, method), []).append(record)
    keys = [
        key for key, entry in entries.items()
        if key in grids and but_for_privacy(entry.records[0]) == but_for_privacy(_best(grids[key]))
    ]  # fmt: skip
    if not keys:
        return []
    rows = [_row(key, entries[key], grids[key]) for key in keys]
    pictures = [_picture(key, grids[key]) for key in keys] if has_pictures else []
    table = PartTable.of_texts("Grids", HEADER, rows, 3)
    return [Part(TITLE, [EXPLANATION], [each for each in pictures if each], [table])]


def epsilon_of(records: Sequence[Record]) -> LogNumber:
    """Return ε of all these runs of eDP-SGD on one training part, as the paper counts.

    The ρ behind the ε that each has as published add up, and the sum becomes ε in the same way,
    with the largest of their δ.
    """
    log_rhos = [log_rho_simple(record.as_published.number.log, record.delta) for record in records]
    delta = max(record.delta for record in records)
    return LogNumber(log_epsilon_simple(float(np.logaddexp.reduce(log_rhos)), delta))


def _best(grid: Sequence[Record]) -> Record:
    """The best of the trials that trained longest."""
    longest = max(record.epochs for record in grid)
    return min((r for r in grid if r.epochs == longest), key=validation_cost)


def _row(key: Key, entry: Entry, grid: Sequence[Record]) -> List[str]:
    family, corpus, method = key
    best = _best(grid)
    chosen = entry.records[0]
    return [
        name_of(corpus),
        family.upper(),
        METHODS[method].name,
        str(len(grid)),
        _settings(best),
        f"{100 * validation_cost(best):.2f}",
        _settings(chosen),
        in_percent(spread_of([validation_cost(record) for record in entry.records]), 2),
        _log10(epsilon_of([chosen])),
        _log10(epsilon_of(grid)),
    ]


def _settings(record: Record) -> str:
    values = {name: value_of(record, key) for name, key in _CHOSEN.items()}
    return ", ".join(f"{name} = {value:g}" for name, value in values.items() if value)


def _log10(epsilon: LogNumber) -> str:
    return "∞" if epsilon.log10 is None else f"{epsilon.log10:.1f}"


def _picture(key: Key, grid: Sequence[Record]) -> Optional[Picture]:
    """The SER on validation against each setting of a grid."""
    names = (*_CHOSEN.values(), RUNG)
    points = [
        Point({name: value_of(record, name) for name in names}, validation_cost(record))
        for record in grid
    ]
    figure = plot_sweep(points, rung=RUNG, columns=1)
    family, corpus, method = key
    caption = f"{name_of(corpus)}, {family.upper()}, {METHODS[method].name}"
    return Picture.of(caption, figure) if figure else None
