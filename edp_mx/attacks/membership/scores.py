"""`scores.npz`: the signals of a model for members and non-members, and their origin."""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Dict, Optional, Tuple

import numpy as np

from edp_mx.attacks.membership.signals import TOP_INTENTS, TOP_TOKENS, Signals
from edp_mx.errors import UserError
from edp_mx.runtime.files import sha256_of, whole_file

FORMAT = 1


@dataclass(frozen=True)
class Origin:
    """Origin of scores.

    Attributes:
        weights: SHA-256 of the file of weights.
        seed: of the choice of utterances.
        is_balanced: whether each intent has equally many members and non-members.
        size: how many members were asked for; 0: all.
        left_out: how many utterances were left out, and why, in words.
        format: of the file.
    """

    weights: str
    corpus: str
    seed: int
    is_balanced: bool
    size: int = 0
    member_part: str = "train"
    non_member_part: str = "test"
    reference_part: str = "validation"
    left_out: str = ""
    format: int = FORMAT


@dataclass(frozen=True, eq=False)
class MembershipScores:
    """Signals of U utterances, and whether the model was trained on them, in one order.

    Attributes:
        is_reference: known to the attacker as a non-member, for calibration; not judged.
        unknown_words: number of unknown tokens of each, where the words come from the training
            part (no member has any); None where they are public.
    """

    signals: Signals
    is_member: np.ndarray
    is_reference: np.ndarray
    ids: Tuple[str, ...]
    intents: Tuple[str, ...]
    origin: Origin
    unknown_words: Optional[np.ndarray] = None

    @property
    def is_judged(self) -> np.ndarray:
        """(U,) bool: the utterances on which an attack is measured."""
        return ~self.is_reference

    @property
    def judged_ids(self) -> Tuple[str, ...]:
        return tuple(self.ids[i] for i in np.flatnonzero(self.is_judged))

    @property
    def judged_signals(self) -> Signals:
        return Signals(*(array[self.is_judged] for array in self.signals))

    @property
    def labels(self) -> np.ndarray:
        """`is_member` of the judged utterances."""
        return self.is_member[self.is_judged]

    def write(self, path: Path) -> None:
        """Write the file, whole or not at all."""
        arrays: Dict[str, np.ndarray] = {
            **self.signals._asdict(),
            "is_member": self.is_member,
            "is_reference": self.is_reference,
            "ids": np.array(self.ids, dtype=str),
            "intents": np.array(self.intents, dtype=str),
            "origin": np.array(json.dumps(asdict(self.origin))),
        }
        if self.unknown_words is not None:
            arrays["unknown_words"] = self.unknown_words
        write_arrays(path, arrays)

    @classmethod
    def read(cls, path: Path, *, weights: str = "") -> MembershipScores:
        """Read the file, and refuse scores of other weights than those with this hash.

        Raises:
            UserError: the file is missing, damaged, of other weights, or inconsistent.
        """
        arrays = read_arrays(path, "run `edp-mx attack RUN` without --from-scores first")
        try:
            origin = Origin(**json.loads(str(arrays["origin"])))
            scores = cls(
                signals=Signals(*(arrays[name] for name in Signals._fields)),
                is_member=arrays["is_member"],
                is_reference=arrays["is_reference"],
                ids=tuple(arrays["ids"].tolist()),
                intents=tuple(arrays["intents"].tolist()),
                origin=origin,
                unknown_words=arrays.get("unknown_words"),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(f"{path} holds no scores of this version ({error})") from error
        scores._check(path)
        if weights and origin.weights != weights:
            raise UserError(
                f"{path} holds the scores of other weights ({origin.weights[:12]}…) than those of "
                f"the run ({weights[:12]}…); attack it again without --from-scores"
            )
        return scores

    def _check(self, path: Path) -> None:
        """Refuse arrays that do not go together."""
        size = len(self.ids)
        shapes = {"intent_top": (size, TOP_INTENTS), "slot_top": (size, TOP_TOKENS)}
        for name, array in self.signals._asdict().items():
            if array.shape != shapes.get(name, (size,)) or array.dtype != np.float64:
                raise UserError(f"{path}: {name} has the shape {array.shape} for {size} utterances")
        for name in ("is_member", "is_reference"):
            array = getattr(self, name)
            if array.shape != (size,) or array.dtype != bool:
                raise UserError(f"{path}: {name} is not one truth value per utterance")
        words = self.unknown_words
        if words is not None and (words.shape != (size,) or words.dtype != np.int64):
            raise UserError(f"{path}: unknown_words is not one integer per utterance")
        if len(self.intents) != size or len(set(self.ids)) != size:
            raise UserError(f"{path}: ids and intents do not go together, or an id occurs twice")
        if (self.is_member & self.is_reference).any():
            raise UserError(f"{path}: a reference utterance is a member")


def write_arrays(path: Path, arrays: Dict[str, np.ndarray]) -> None:
    """Write a `.npz` file, whole or not at all."""
    archive = io.BytesIO()
    np.savez_compressed(archive, **arrays)
    with whole_file(path) as file:
        file.write(archive.getbuffer())


def read_arrays(path: Path, advice: str) -> Dict[str, np.ndarray]:
    """Read a `.npz` file without executing anything in it.

    Args:
        advice: what to do if it is missing.

    Raises:
        UserError: the file is missing or damaged.
    """
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except FileNotFoundError as error:
        raise UserError(f"there is no {path}: {advice}") from error
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        raise UserError(f"{path} is damaged or of another program ({error}); {advice}") from error


def hash_of(path: Path) -> str:
    """Return the SHA-256 of a file.

    Raises:
        UserError: it cannot be read.
    """
    try:
        return sha256_of(path)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
