"""One pass over a text before training, which counts its lines and pieces."""

from __future__ import annotations

import hashlib
from array import array
from dataclasses import dataclass, field, replace
from typing import Callable, Sequence, Tuple

import numpy as np

from edp_mx.data.origin import Lowest
from edp_mx.data.text import Sample, Text, digest, lines_of
from edp_mx.errors import UserError
from edp_mx.runtime.progress import Heartbeat, no_heartbeat

_HEARTBEAT_EVERY = 1 << 12  # lines
_COUNTED_AT_ONCE = 1 << 16  # pieces


@dataclass(frozen=True, eq=False)
class Survey:
    """Counts of a text's training lines: by file, of each piece, (V,), and of those cut short.

    `lowest` is a sample of them.
    """

    lines: Tuple[int, ...]
    fingerprint: str
    pieces: np.ndarray
    cut: int
    lowest: Lowest = field(default_factory=Lowest)

    @property
    def total_lines(self) -> int:
        return sum(self.lines)

    def merge(self, shares: Sequence[Tuple[np.ndarray, int]]) -> Survey:
        """Return the survey with the pieces and cut lines of all workers' shares added up."""
        pieces, cut = zip(*shares)
        return replace(self, pieces=np.sum(pieces, axis=0), cut=sum(cut))


class _Counts:
    """How often each piece occurs in some lines, and how many lines are cut off."""

    def __init__(self, num_pieces: int, max_pieces: int) -> None:
        self._pieces = np.zeros(num_pieces, np.int64)  # (V,)
        self._room, self._waiting, self.cut = max_pieces - 2, array("i"), 0

    def add(self, ids: Sequence[int]) -> None:
        self.cut += len(ids) > self._room
        self._waiting.extend(ids[: self._room])
        if len(self._waiting) > _COUNTED_AT_ONCE:
            self.pieces()

    def pieces(self) -> np.ndarray:
        """Return the counts so far, (V,)."""
        if self._waiting:
            self._pieces += np.bincount(self._waiting, minlength=len(self._pieces))
            self._waiting = array("i")
        return self._pieces


def survey(
    text: Text,
    encode: Callable[[str], Sequence[int]],
    *,
    num_pieces: int,
    max_pieces: int,
    max_held_out: int,
    rank: int = 0,
    num_workers: int = 1,
    heartbeat: Heartbeat = no_heartbeat,
) -> Tuple[Text, Survey]:
    """Return a text with its held-out lines, and counts: of all lines, and of this share's pieces.

    Every worker reads all lines, but splits its own share alone into pieces. Those beyond
    `max_pieces` (with [CLS] and [SEP]) are not counted.
    """
    sample, lowest, sha = Sample(max_held_out), Lowest(), hashlib.sha256()
    counts, lines = _Counts(num_pieces, max_pieces), []
    seen = 0
    for path in text.paths:
        before = seen
        for line in lines_of(path):
            value = digest(line)
            if text.holds_out(value):
                sample.add(value, line)
                continue
            sha.update(f"{line}\n".encode())
            lowest.add(value)
            if seen % num_workers == rank:
                counts.add(encode(line))
            seen += 1
            if seen % _HEARTBEAT_EVERY == 0:
                heartbeat(f"counting the text, line {seen}")
        lines.append(seen - before)
    text = text if text.held_out else replace(text, held_out=sample.lines())
    if not text.held_out:
        raise UserError("text.held_out_fraction holds out no line; raise it or set text.held_out")
    return text, Survey(tuple(lines), sha.hexdigest()[:16], counts.pieces(), counts.cut, lowest)
