"""Results of an attack on a run: `RUN/attack-<name>/`."""

from __future__ import annotations

import csv
import io
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Dict, Sequence, Tuple

import numpy as np

from edp_mx.attacks.membership.roc import Success, measure
from edp_mx.attacks.membership.scores import MembershipScores, Origin
from edp_mx.attacks.membership.thresholds import Guesses
from edp_mx.errors import UserError
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.files import read_json, write_csv, write_json


@dataclass(frozen=True)
class Outcome:
    """Measured success of one attack on one run.

    Attributes:
        origin: of its scores.
        results: (name, how it works, its success), the headline first.
        facts: further facts that explain the results.
    """

    attack: str
    run: str
    origin: Origin
    results: Tuple[Tuple[str, str, Success], ...]
    facts: Dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> Dict[str, Any]:
        """Return a value for strict JSON (`attack.json`)."""
        return {
            "attack": self.attack,
            "run": self.run,
            "origin": asdict(self.origin),
            "results": [
                {"name": name, "says": says, **success.to_dict()}
                for name, says, success in self.results
            ],
            "facts": self.facts,
        }


@dataclass(frozen=True, eq=False)
class SavedGuesses:
    """Content of `guesses.csv`. Shapes: is_member (U,) · each of `scores` (U,)."""

    is_member: np.ndarray
    scores: Dict[str, np.ndarray]


def attack_folder(run: RunDirectory, attack: str) -> Path:
    """Return the folder of an attack on a run."""
    return run.path / f"attack-{attack}"


def write_outcome(
    run: RunDirectory,
    attack: str,
    guesses: Sequence[Guesses],
    scores: MembershipScores,
    *,
    facts: Dict[str, Any],
) -> Outcome:
    """Measure guesses about the judged utterances, the headline first, and write the outcome."""
    labels = scores.labels
    outcome = Outcome(
        attack,
        run.path.resolve().name,
        scores.origin,
        tuple(
            (
                one.name,
                one.says,
                measure(one.scores, labels, seed=scores.origin.seed, threshold=one.threshold),
            )
            for one in guesses
        ),
        facts,
    )
    folder = attack_folder(run, attack)
    columns = [np.asarray(one.scores, np.float64).tolist() for one in guesses]
    rows = list(zip(scores.judged_ids, labels.astype(int).tolist(), *columns))
    write_json(folder / "attack.json", outcome.to_dict())  # first: refuses what is not JSON
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


def read_attack(folder: Path) -> Dict[str, Any]:
    """Read `attack.json`."""
    value = read_json(folder / "attack.json")
    if not isinstance(value, dict) or not value.get("attack"):
        raise UserError(f"{folder / 'attack.json'} does not describe an attack")
    return value
