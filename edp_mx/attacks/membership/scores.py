"""`scores.npz`: the signals of a model for members and non-members, and their origin."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Dict, Optional, Tuple

import numpy as np

from edp_mx.attacks.membership.signals import TOP_INTENTS, TOP_TOKENS, Signals
from edp_mx.dp.weights import write_arrays
from edp_mx.errors import UserError
from edp_mx.runtime.files import sha256_of
from edp_mx.runtime.json_text import parse_json
from edp_mx.runtime.npz import read_arrays


@dataclass(frozen=True)
class Origin:
    """Origin of scores: the SHA-256 of the weights, and how the utterances were chosen.

    At most `size` members were asked for, or all (0); why others were left out is said in words.
    """

    weights: str
    corpus: str
    seed: int
    is_balanced: bool
    size: int = 0
    left_out: str = ""


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
        write_arrays(path, arrays, compress=True)

    @classmethod
    def read(cls, path: Path, *, weights: str = "") -> MembershipScores:
        """Read the file; refuse one that is damaged, inconsistent, or of other weights."""
        advice = "run `edp-mx attack RUN` without --from-scores first"
        arrays = read_arrays(path, "a file of scores", advice=advice)
        try:
            origin = Origin(**parse_json(str(arrays["origin"])))
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
        for name, kind, what in (
            ("is_member", bool, "truth value"),
            ("is_reference", bool, "truth value"),
            ("unknown_words", np.int64, "integer"),
        ):
            array = getattr(self, name)
            if array is not None and (array.shape != (size,) or array.dtype != kind):
                raise UserError(f"{path}: {name} is not one {what} per utterance")
        if len(self.intents) != size or len(set(self.ids)) != size:
            raise UserError(f"{path}: ids and intents do not go together, or an id occurs twice")
        if (self.is_member & self.is_reference).any():
            raise UserError(f"{path}: a reference utterance is a member")


def hash_of(path: Path) -> str:
    """Return the SHA-256 of a file; refuse one that cannot be read."""
    try:
        return sha256_of(path)
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
