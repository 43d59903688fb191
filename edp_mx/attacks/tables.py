"""The paper's attack on the runs of a table: the shadow is the SGD run on another corpus."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Callable, Dict, List, Optional, Sequence

from edp_mx.attacks.membership.shadow_attack import OTHER_CORPUS
from edp_mx.runs.attack_records import keep_attacks
from edp_mx.runs.records import collect
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runs.sweep.processes import log_of
from edp_mx.runs.sweep.trainings import Budget, Trainings
from edp_mx.runs.sweep.trial import last_sentence
from edp_mx.runs.tables.cells import Cell, Request, cells_of


def shadow_cells(request: Request) -> List[Cell]:
    """Return the SGD cells that the attack needs and that the table itself does not ask for."""
    others = dict.fromkeys(OTHER_CORPUS[corpus] for corpus in request.corpora)
    wanted = cells_of(request._replace(corpora=tuple(others), methods=("sgd",)))
    is_there = set(request.corpora) if "sgd" in request.methods else set()
    return [cell for cell in wanted if cell.corpus not in is_there]


def attack_cells(
    cells: Sequence[Cell],
    shadows: Sequence[Cell],
    trainings: Trainings,
    budget: Budget,
    *,
    records: Path,
    on_end: Callable[[], None] = lambda: None,
) -> List[str]:
    """Attack each run of a table that is here and was not attacked yet, and keep what it came to.

    Args:
        shadows: from `shadow_cells`, trained.
        records: the folder to keep the records of attacks in.
        on_end: told after each attack.

    Returns:
        A line for each attack that was not made: what it lacks, or how it failed.
    """
    here = {found.record["hash"]: found.place for found in collect([trainings.folder])}
    by_place = {
        (cell.corpus, cell.family, cell.seed): cell
        for cell in (*cells, *shadows)
        if cell.method == "sgd"
    }
    said = []
    for cell in (each for each in cells if each.trial.record):
        run = _run_of(cell, here)
        shadow_cell = by_place[OTHER_CORPUS[cell.corpus], cell.family, cell.seed]
        shadow = _run_of(shadow_cell, here)
        if run is not None and (run.path / "attack-shadow" / "attack.json").exists():
            keep_attacks(run, records)
            continue
        if run is None or shadow is None:
            lacking = shadow_cell if run is not None else cell
            said.append(
                f"attack on {cell.name}: the run of {lacking.name} is not in the runs' folder"
            )
        elif not budget.permits():
            said.append(f"attack on {cell.name}: not made yet")
        elif _attack(run, shadow, trainings):
            said.append(f"attack on {cell.name}: {last_sentence(log_of(run))}")
        else:
            keep_attacks(run, records)
            on_end()
    return said


def _run_of(cell: Cell, here: Dict[str, Path]) -> Optional[RunDirectory]:
    """The run directory of a cell, if it is here."""
    place = here.get(cell.trial.record["hash"]) if cell.trial.record else None
    return RunDirectory(place) if place is not None and place.is_dir() else None


def _attack(run: RunDirectory, shadow: RunDirectory, trainings: Trainings) -> int:
    """Attack a run in a process of its own; return the exit code."""
    words = [sys.executable, "-m", "edp_mx", "attack", str(run.path), "--shadow", str(shadow.path)]
    return trainings.run(words, log_of(run))
