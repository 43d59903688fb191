"""Results of an attack on a run: `RUN/attack-<name>/`."""

from __future__ import annotations

import csv
import io
from dataclasses import asdict
from pathlib import Path
from typing import Any, Dict, NamedTuple, Sequence

import numpy as np

from edp_mx.attacks.membership.roc import measure
from edp_mx.attacks.membership.scores import MembershipScores
from edp_mx.attacks.membership.thresholds import Guesses
from edp_mx.errors import UserError
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.files import write_csv, write_json


class SavedGuesses(NamedTuple):
    """Content of `guesses.csv`. Shapes: is_member (U,) · each of `scores` (U,)."""

    is_member: np.ndarray
    scores: Dict[str, np.ndarray]


def attack_folder(run: RunDirectory, attack: str) -> Path:
    return run.path / f"attack-{attack}"


def write_outcome(
    run: RunDirectory,
    attack: str,
    guesses: Sequence[Guesses],
    scores: MembershipScores,
    *,
    facts: Dict[str, Any],
) -> Dict[str, Any]:
    """Measure guesses about the judged utterances, the headline first, and write the outcome.

    Returned is the content of `attack.json`, in which `facts` explain the results.
    """
    labels, seed = scores.labels, scores.origin.seed
    measured = [measure(one.scores, labels, seed=seed, threshold=one.threshold) for one in guesses]
    outcome = {
        "attack": attack,
        "run": run.path.resolve().name,
        "origin": asdict(scores.origin),
        "results": [
            {"name": one.name, "says": one.says, **asdict(success)}
            for one, success in zip(guesses, measured)
        ],
        "facts": facts,
    }
    folder = attack_folder(run, attack)
    columns = [np.asarray(one.scores, np.float64).tolist() for one in guesses]
    rows = list(zip(scores.judged_ids, labels.astype(int).tolist(), *columns))
    (folder / "roc.csv").unlink(missing_ok=True)  # an earlier one: it is drawn last, as the end
    write_json(folder / "attack.json", outcome)  # first: it refuses values that JSON lacks
    write_csv(folder / "guesses.csv", ["id", "is_member", *(one.name for one in guesses)], rows)
    return outcome


def read_guesses(folder: Path) -> SavedGuesses:
    """Read the scores that an attack gave, `guesses.csv`."""
    path = folder / "guesses.csv"
    try:
        header, *rows = csv.reader(io.StringIO(path.read_text("utf-8")))
        table = np.array([row[1:] for row in rows], dtype=np.float64)  # (U, 1 + attacks)
        if header[:2] != ["id", "is_member"] or table.shape[1] != len(header) - 1:
            raise ValueError("unexpected columns")
    except (OSError, ValueError, IndexError) as error:
        raise UserError(f"cannot read {path}: {error}") from error
    return SavedGuesses(table[:, 0] == 1, dict(zip(header[2:], table[:, 1:].T)))
