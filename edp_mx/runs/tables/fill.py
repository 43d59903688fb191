"""The trainings that a table lacks, and where their records are kept."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Callable, Dict, Hashable, Iterable, List, Sequence, Tuple, TypeVar

from edp_mx.runs.attack_records import keep_attacks
from edp_mx.runs.by_epoch import without_epochs
from edp_mx.runs.record import absent_files, keep
from edp_mx.runs.records import collect
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runs.sweep.processes import Ended
from edp_mx.runs.sweep.trainings import Budget, Trainings
from edp_mx.runs.tables.cells import Cell
from edp_mx.runtime.json_text import read_json

logger = logging.getLogger(__name__)

Key = TypeVar("Key", bound=Hashable)


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


def runs_below(folder: Path) -> Dict[str, Path]:
    """Return where the finished runs below a folder are, by the hash of their records."""
    found = collect([folder]) if folder.exists() else []
    return {each.record["hash"]: each.place for each in found if each.place.is_dir()}


def fill(
    cells: Sequence[Cell],
    shadows: Sequence[Cell],
    trainings: Trainings,
    budget: Budget,
    *,
    records: Path,
    on_end: Callable[[], None] = lambda: None,
) -> None:
    """Train the cells that have no record, as far as the budget goes, and keep their records.

    Args:
        shadows: trained after them; what they left before, with the attacks on it, stays.
        records: the folder to keep them in.
        on_end: told after each training.
    """
    new = [each for each in shadows if not any(records.glob(f"*-{each.trial.hash}.json"))]
    keep_known([*cells, *new], trainings.folder, records)
    to_keep = {cell.trial.hash for cell in (*cells, *new)}

    def ended(one: Ended) -> None:
        if one.trial.record is not None and one.trial.hash in to_keep:
            keep_whole(one.run, records)
        on_end()

    trainings.train([cell.trial for cell in (*cells, *shadows)], budget, on_end=ended)


def keep_known(cells: Sequence[Cell], folder: Path, records: Path) -> None:
    """Keep the records of this table's finished runs, which a killed call may have left behind."""
    wanted = {cell.trial.record["hash"] for cell in cells if cell.trial.record}
    for its_hash, place in runs_below(folder).items():
        if its_hash in wanted:
            keep_whole(RunDirectory(place), records)


def keep_whole(run: RunDirectory, records: Path) -> None:
    """Keep the records of a run and of the attacks on it.

    Those of another run with the same settings, which was trained before, go.
    """
    record = run.read("record")
    for path in records.glob(f"*-{record['hash']}.json"):
        if without_epochs(read_json(path)) != without_epochs(record):
            for each in (path, *records.glob(f"*-{record['hash']}-attack-*.json")):
                each.unlink()
    keep(run, records)
    keep_attacks(run, records)


def problems(cells: Sequence[Cell]) -> List[str]:
    """Return why cells have no record, or that they wait: a line for those that are alike."""
    lacking = [cell for cell in cells if cell.trial.record is None]
    methods = _grouped(
        ((cell.trial.error or "not trained yet", cell.family, cell.corpus, cell.seed), cell.method)
        for cell in lacking
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
