"""What an attack on a run leaves behind: `RUN/attack-<name>/`."""

from __future__ import annotations

import csv
import io
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Dict, List, Sequence, Tuple

import numpy as np

from edp_mx.attacks.membership.roc import Success, measure
from edp_mx.attacks.membership.scores import MembershipScores, Origin
from edp_mx.attacks.membership.thresholds import Guesses
from edp_mx.errors import UserError
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.files import read_json, write_json, write_text


@dataclass(frozen=True)
class Outcome:
    """One attack on one run, measured.

    Attributes:
        attack: threshold, shadow or lira.
        run: the name of the attacked run's folder.
        origin: of its scores.
        results: (name, how it works, how well it does), the headline first.
        facts: whatever else explains them.
    """

    attack: str
    run: str
    origin: Origin
    results: Tuple[Tuple[str, str, Success], ...]
    facts: Dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> Dict[str, Any]:
        """Strict JSON, for `attack.json`."""
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
    """`guesses.csv`, read back. Shapes: is_member (U,) · each of `scores` (U,)."""

    is_member: np.ndarray
    scores: Dict[str, np.ndarray]


def attack_folder(run: RunDirectory, attack: str) -> Path:
    """Where an attack's files are."""
    return run.path / f"attack-{attack}"


def write_outcome(
    run: RunDirectory,
    attack: str,
    guesses: Sequence[Guesses],
    scores: MembershipScores,
    *,
    seed: int,
    facts: Dict[str, Any],
) -> Outcome:
    """Measures the guesses about a run's members and non-members, and writes both down.

    Both files are made before either is written: what fails in making them changes nothing.

    Args:
        guesses: about those that are judged, in the order of `scores`; the headline first.
        seed: of the bootstrap.
    """
    labels = scores.labels
    outcome = Outcome(
        attack,
        run.path.resolve().name,
        scores.origin,
        tuple(
            (one.name, one.says, measure(one.scores, labels, seed=seed, threshold=one.threshold))
            for one in guesses
        ),
        facts,
    )
    folder = attack_folder(run, attack)
    ids = [scores.ids[i] for i in np.flatnonzero(scores.is_judged)]
    table = _as_csv(guesses, labels, ids)
    write_json(folder / "attack.json", outcome.to_dict())  # first: what is no JSON is refused here
    write_text(folder / "guesses.csv", table)
    return outcome


def read_guesses(folder: Path) -> SavedGuesses:
    """The scores that an attack gave.

    Raises:
        UserError: the file is missing or not ours.
    """
    path = folder / "guesses.csv"
    try:
        header, *rows = csv.reader(io.StringIO(path.read_text("utf-8")))
        table = np.array([row[1:] for row in rows], dtype=np.float64)  # (U, 1 + attacks)
        if header[:2] != ["id", "is_member"] or table.shape[1] != len(header) - 1:
            raise ValueError("the columns are not ours")
    except (OSError, ValueError, IndexError) as error:
        raise UserError(f"cannot read {path}: {error}") from error
    return SavedGuesses(table[:, 0] == 1, dict(zip(header[2:], table[:, 1:].T)))


def read_attack(folder: Path) -> Dict[str, Any]:
    """`attack.json`.

    Raises:
        UserError: it is missing or not ours.
    """
    value = read_json(folder / "attack.json")
    if not isinstance(value, dict) or not value.get("attack"):
        raise UserError(f"{folder / 'attack.json'} holds no attack")
    return value


def _as_csv(guesses: Sequence[Guesses], labels: np.ndarray, ids: List[str]) -> str:
    """One line an utterance, in full precision."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["id", "is_member", *(one.name for one in guesses)])
    columns = [np.asarray(one.scores, np.float64).tolist() for one in guesses]
    writer.writerows(zip(ids, labels.astype(int).tolist(), *columns))
    return text.getvalue()
