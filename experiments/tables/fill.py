"""The trainings that a table lacks, and where their records are kept."""

from __future__ import annotations

from pathlib import Path
from typing import Callable, Dict, Hashable, Iterable, List, Sequence, Tuple, TypeVar

from edp_mx.runs.attack_records import keep_whole
from edp_mx.runs.record import absent_files, run_id
from edp_mx.runs.records import collect
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runs.sweep.budget import Budget
from edp_mx.runs.sweep.processes import Ended
from experiments.tables.cells import Cell, Table, find_for_cell
from experiments.tables.trainings import TableTrial, Trainings

Key = TypeVar("Key", bound=Hashable)


def look_up(cells: Sequence[Cell], trainings: Trainings) -> None:
    """Give each cell its records, or the reason why it has none and cannot be trained."""
    for cell in cells:
        trial = cell.trial
        if trial.config is None:
            continue
        trial.records = find_for_cell(trainings.records, trial.config, workers=trainings.workers)
        trial.error = None if trial.records else trainings.failures.get(trial.hash)
        absent = {} if trial.records else absent_files(trial.config)
        if absent:
            named = ", ".join(f"{key}: {path}" for key, path in absent.items())
            trial.error = f"needs missing files ({named}); docs/tables.md shows how to make them"


def runs_below(folder: Path) -> Dict[str, Path]:
    """Return where the finished runs below a folder are, by their ids."""
    found = collect([folder]) if folder.exists() else []
    return {run_id(each.record): each.place for each in found if each.is_run}


def fill(
    table: Table, trainings: Trainings, budget: Budget, on_end: Callable[[], object] = lambda: None
) -> None:
    """Train what has no record, shadows last, as far as the budget goes, and keep the records.

    Kept are also those of the runs, and of attacks on these, that a killed call left behind.
    """
    trials = [cell.trial for cell in table.trainings]
    wanted = {run_id(record) for trial in trials for record in trial.records}
    for its_id, place in runs_below(table.runs).items():
        if its_id in wanted:
            keep_whole(RunDirectory(place), table.records)

    def ended(one: Ended[TableTrial]) -> None:
        if not one.trial.error:
            keep_whole(one.run, table.records)
        on_end()

    trainings.train(trials, budget, on_end=ended)


def problems(cells: Sequence[Cell]) -> List[str]:
    """Return why cells have no record, or that they wait: one line for each reason."""
    said = []
    for cell in cells:
        trial = cell.trial
        if trial.error or trial.is_open:
            waits = "is to be trained again" if trial.records else "not trained yet"
            said.append((cell, trial.error or waits))
    return lines_of(said)


def lines_of(said: Iterable[Tuple[Cell, str]]) -> List[str]:
    """Return one line for all cells with the same reason."""
    methods = _grouped(
        ((reason, cell.family, cell.corpus, cell.seed), cell.method) for cell, reason in said
    )
    corpora = _grouped(
        ((reason, family, of_it, seed), f"{corpus}_{family}")
        for (reason, family, corpus, seed), of_it in methods.items()
    )
    seeds = _grouped(
        ((reason, of_it, there), str(seed)) for (reason, _, of_it, seed), there in corpora.items()
    )
    return [
        f"{', '.join(there)} ({', '.join(of_it)}), seed{'s' * (len(each) > 1)} {', '.join(each)}: "
        f"{reason}"
        for (reason, of_it, there), each in seeds.items()
    ]


def _grouped(pairs: Iterable[Tuple[Key, str]]) -> Dict[Key, Tuple[str, ...]]:
    """The values of each key, in their order."""
    found: Dict[Key, List[str]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return {key: tuple(values) for key, values in found.items()}
