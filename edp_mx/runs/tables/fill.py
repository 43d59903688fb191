"""The trainings that a table lacks, and where their records are kept."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Callable, Dict, Hashable, Iterable, List, Sequence, Tuple, TypeVar

from edp_mx.runs.attack_records import keep_attacks
from edp_mx.runs.record import absent_files, identity_of, keep
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
    new = [each for each in shadows if not _records_of(each.trial.hash, records)]
    keep_known([*cells, *new], trainings.folder, records)
    to_keep = {cell.trial.hash for cell in (*cells, *new)}

    def ended(one: Ended) -> None:
        if one.trial.record is not None and one.trial.hash in to_keep:
            keep_whole(one.run, records)
        on_end()

    trainings.train([cell.trial for cell in (*cells, *shadows)], budget, on_end=ended)


def keep_known(cells: Sequence[Cell], folder: Path, records: Path) -> None:
    """Keep the records of this table's finished runs, which a killed call may have left behind.

    A record that was kept later than a run ended, such as a colleague's, stays.
    """
    wanted = {cell.trial.record["hash"] for cell in cells if cell.trial.record}
    for its_hash, place in runs_below(folder).items():
        run = RunDirectory(place)
        kept = _records_of(its_hash, records)
        ended = (place / "record.json").stat().st_mtime
        if its_hash in wanted and all(path.stat().st_mtime < ended for path in kept):
            keep_whole(run, records)


def keep_whole(run: RunDirectory, records: Path) -> None:
    """Keep the records of a run and of the attacks on it.

    Those of another run with the same settings, which was trained before, go.
    """
    its_hash = run.read("record")["hash"]
    if not is_its_record(run, records):
        for attack in records.glob(f"*-{its_hash}-attack-*.json"):
            attack.unlink()  # before the record, lest they seem to be of the new run
        for path in _records_of(its_hash, records):
            path.unlink()
    keep(run, records)
    keep_attacks(run, records)


def is_its_record(run: RunDirectory, records: Path) -> bool:
    """Return whether no other run with the same settings has a record there."""
    record = run.read("record")
    kept = _records_of(record["hash"], records)
    return all(identity_of(read_json(path)) == identity_of(record) for path in kept)


def _records_of(its_hash: str, records: Path) -> List[Path]:
    return list(records.glob(f"*-{its_hash}.json"))


def problems(cells: Sequence[Cell]) -> List[str]:
    """Return why cells have no record, or that they wait: a line for those that are alike."""
    said = []
    for cell in cells:
        trial = cell.trial
        if trial.error or trial.is_open:
            waits = "is to be trained again" if trial.record else "not trained yet"
            said.append((cell, trial.error or waits))
    return lines_of(said)


def lines_of(said: Iterable[Tuple[Cell, str]]) -> List[str]:
    """Return a line for all cells of which the same is said."""
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
