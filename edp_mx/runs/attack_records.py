"""What remains of an attack on a run: its success, without scores of any utterance."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any, Dict, List, Sequence, Tuple

import numpy as np

from edp_mx.errors import UserError
from edp_mx.runs.by_epoch import rounded
from edp_mx.runs.record import id_kept_at, keep, run_id
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runs.shapes import check_file
from edp_mx.runtime.files import write_json
from edp_mx.runtime.json_text import read_json

AttackRecord = Dict[str, Any]
_MEASURED = ("auc", "tpr_at_fpr", "members", "non_members", "confidence")
ROC_FPRS = [rounded(10 ** (i / 10 - 3)) for i in range(31)]  # 0.001, …, 1


def attack_records_of(run: RunDirectory) -> List[AttackRecord]:
    """Return a record of each attack on a finished run, from `attack-<name>/attack.json`.

    A record says which run was attacked (its `run_id`, settings and name), how, and with what
    success: AUC and TPR at small false-positive rates with their intervals, and the ROC curve. An
    attack without the curve, which is drawn last, is not at its end yet.
    """
    if not run.has("record"):
        return []
    record = run.read("record")
    found = []
    for path in sorted(run.path.glob("attack-*/attack.json")):
        if not path.with_name("roc.csv").exists():
            continue
        outcome = check_file("attack", read_json(path), path)
        found.append(
            {
                "attack": outcome["attack"],
                "run": run_id(record),
                "attacked_run": record["hash"],
                "name": record["name"],
                "shadow_corpus": outcome["facts"].get("shadow corpus"),
                "shadows": outcome["facts"].get("shadows"),
                "success": {
                    result["name"]: {key: result[key] for key in _MEASURED}
                    for result in outcome["results"]
                },
                "roc": {"fpr": ROC_FPRS, "tpr": _tprs(path.with_name("roc.csv"))},
            }
        )
    return found


def _tprs(path: Path) -> Dict[str, List[float]]:
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
        found[name] = [rounded(tpr) for tpr in tprs[places]]
    return found


def keep_whole(run: RunDirectory, folder: Path) -> List[Path]:
    """Copy the record of a finished run, and beside it those of all attacks on it.

    Returns:
        Where they are, the run's own first.
    """
    kept = [keep(run, folder)]
    for record in attack_records_of(run):
        kept.append(folder / f"{kept[0].stem}-attack-{record['attack']}.json")
        write_json(kept[-1], record)
    return kept


def collect_attacks(paths: Sequence[Path]) -> List[AttackRecord]:
    """Return the records of attacks at, or anywhere below, each path, and those of runs there.

    One that an older version kept does not say which of several runs with the same settings was
    attacked: it is the one whose record lies beside it, under the same name.
    """
    found: Dict[Tuple[str, str], AttackRecord] = {}
    for path in paths:
        files = [path] if path.is_file() else sorted(path.rglob("*-attack-*.json"))
        read = [(file, read_json(file)) for file in files if file.suffix == ".json"]
        records = [_checked(value, file) for file, value in read if _is_attack(value)]
        for attack in {file.parent.parent for file in path.glob("**/attack-*/attack.json")}:
            records += attack_records_of(RunDirectory(attack))
        for record in records:
            found[record["run"], record["attack"]] = record
    return list(found.values())


def _checked(value: Any, file: Path) -> AttackRecord:
    record = check_file("attack_record", value, file)
    if "run" not in record:
        stem = file.name.rpartition("-attack-")[0]
        record["run"] = id_kept_at(file.with_name(f"{stem}.json"))
    return record


def _is_attack(value: Any) -> bool:
    return isinstance(value, dict) and {"attack", "attacked_run", "success"} <= set(value)
