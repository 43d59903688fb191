"""Records of attacks on runs: their success, without scores of any utterance."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Dict, Iterator, List, Sequence, Tuple

import numpy as np

from edp_mx.errors import UserError
from edp_mx.runs.attack_files import AttackOutcome, AttackRecord, RocCurves
from edp_mx.runs.file_types import Record
from edp_mx.runs.record import record_of, rounded, run_id
from edp_mx.runs.record_files import (
    ATTACKS,
    RUNS,
    is_run,
    key_of_attack,
    name_of,
    put_attacks,
    put_runs,
    records_in,
    walk,
)
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.json_text import read_json
from edp_mx.runtime.structured import structure_file

_CHOSEN = ("size", "is_balanced")  # of an attack's origin, all 0 or False as usual
ROC_FPRS = [rounded(10 ** (i / 10 - 3)) for i in range(31)]  # 0.001, …, 1


def attack_records_of(run: RunDirectory) -> List[AttackRecord]:
    """Return a record of each attack on a finished run, from `attack-<name>/attack.json`.

    A record says which run was attacked (its `run_id`, settings and name), how, and with what
    success: AUC and TPR at small false-positive rates with their intervals, and the ROC curve. An
    attack without the curve, which is drawn last, is not at its end yet.
    """
    if not run.has("record"):
        return []
    record = run.load(Record)
    found = []
    for path in sorted(run.path.glob("attack-*/attack.json")):
        if not path.with_name("roc.csv").exists():
            continue
        outcome = read_attack(path.parent)
        origin = outcome.origin or {}
        found.append(
            AttackRecord(
                attack=outcome.attack,
                run=run_id(record),
                attacked_run=record.hash,
                name=record.name,
                shadow_corpus=outcome.facts.get("shadow corpus"),
                shadows=outcome.facts.get("shadows"),
                success={each.name: each.success for each in outcome.results},
                roc=RocCurves(tuple(ROC_FPRS), _tprs(path.with_name("roc.csv"))),
                chosen={key: origin[key] for key in _CHOSEN if origin.get(key)},
            )
        )
    return found


def read_attack(folder: Path) -> AttackOutcome:
    path = folder / "attack.json"
    return structure_file(read_json(path), AttackOutcome, path)


def _tprs(path: Path) -> Dict[str, Tuple[float, ...]]:
    """The TPR of each curve of `roc.csv` at `ROC_FPRS`, without interpolation."""
    curves: Dict[str, List[Tuple[float, float]]] = {}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file, strict=True):
                point = float(row["fpr"]), float(row["tpr"])
                curves.setdefault(row["attack"], []).append(point)
    except (OSError, KeyError, TypeError, ValueError, csv.Error) as error:
        raise UserError(f"{path} cannot be read as ROC curves ({error})") from error
    found = {}
    for name, curve in curves.items():
        fprs, tprs = np.transpose(curve)  # (P,), rising
        places = np.searchsorted(fprs, ROC_FPRS, side="right") - 1  # (31,)
        found[name] = tuple(rounded(tpr) for tpr in tprs[places])
    return found


def keep_whole(run: RunDirectory, folder: Path) -> List[str]:
    """Add the records of a run and of the attacks on it to the files of a folder, and say so."""
    if not run.has("results"):
        raise UserError(f"{run.path} is not finished: there is nothing to keep")
    record, attacks = record_of(run), attack_records_of(run)
    put_runs(folder / RUNS, [record])
    put_attacks(folder / ATTACKS, attacks)
    name = name_of(record)
    of_attacks = [f"{folder / ATTACKS}: {name}, {each.attack}" for each in attacks]
    return [f"{folder / RUNS}: {name}", *of_attacks]


def collect_attacks(paths: Sequence[Path]) -> List[AttackRecord]:
    """Return the records of attacks at, or anywhere below, each path, and those of runs there."""
    found: Dict[Tuple[str, ...], AttackRecord] = {}
    for path in paths:
        found.update((key_of_attack(record), record) for record in _below(path))
    return list(found.values())


def _below(path: Path) -> Iterator[AttackRecord]:
    if path.suffix == ".jsonl" and path.is_file():
        yield from records_in(path, AttackRecord)
    for folder, files in walk(path):
        if is_run(files):
            yield from attack_records_of(RunDirectory(folder))
        elif ATTACKS in files:
            yield from records_in(folder / ATTACKS, AttackRecord)
