"""The trainings that a table lacks, and where their records are kept."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Callable, List, Sequence

from edp_mx.runs.attack_records import keep_attacks
from edp_mx.runs.record import absent_files, keep
from edp_mx.runs.records import collect
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runs.sweep.processes import Ended
from edp_mx.runs.sweep.trainings import Budget, Trainings
from edp_mx.runs.tables.cells import Cell

logger = logging.getLogger(__name__)


def look_up(cells: Sequence[Cell], trainings: Trainings) -> None:
    """Give each cell its record, or say why it has none and cannot be trained."""
    for cell in cells:
        trial = cell.trial
        trainings.look_up(trial)
        if trial.config is not None and trial.record is None:
            absent = absent_files(trial.config)
            if absent:
                named = ", ".join(f"{key}: {path}" for key, path in absent.items())
                trial.error = (
                    f"needs what is not there ({named}); docs/tables.md says how to make it"
                )


def fill(
    cells: Sequence[Cell],
    trainings: Trainings,
    budget: Budget,
    *,
    records: Path,
    on_end: Callable[[], None] = lambda: None,
) -> None:
    """Train the cells that have no record, as far as the budget goes, and keep their records.

    Args:
        records: the folder to keep them in.
        on_end: told after each training.
    """
    keep_known(cells, trainings.folder, records)

    def ended(one: Ended) -> None:
        if one.trial.record is not None:
            keep(one.run, records)
        on_end()

    trainings.train([cell.trial for cell in cells], budget, on_end=ended)


def keep_known(cells: Sequence[Cell], folder: Path, records: Path) -> None:
    """Keep the records of this table's finished runs, which a killed call may have left behind."""
    wanted = {cell.trial.record["hash"] for cell in cells if cell.trial.record}
    for found in collect([folder]):
        if found.place.is_dir() and found.record["hash"] in wanted:
            keep(RunDirectory(found.place), records)
            keep_attacks(RunDirectory(found.place), records)


def problems(cells: Sequence[Cell]) -> List[str]:
    """Return a line for each cell without a record: why, or that it waits."""
    lacking = [cell for cell in cells if cell.trial.record is None]
    return [f"{cell.name}: {cell.trial.error or 'not trained yet'}" for cell in lacking]
