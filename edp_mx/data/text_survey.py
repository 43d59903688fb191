"""One pass over a text before training, which counts its lines and pieces."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Callable, List, Sequence, Tuple

import numpy as np

from edp_mx.data.text import Sample, Text, digest, lines_of
from edp_mx.errors import UserError

_HEARTBEAT_EVERY = 1 << 12  # lines
_COUNTED_AT_ONCE = 1 << 16  # pieces


@dataclass(frozen=True, eq=False)
class Survey:
    """Counts of the training lines of a text.

    Attributes:
        lines: number of lines, by file.
        fingerprint: a hash of all of them.
        pieces: (V,) int64, how often each piece occurs.
        cut: number of lines that are longer than the model takes.
    """

    lines: Tuple[int, ...]
    fingerprint: str
    pieces: np.ndarray
    cut: int

    @property
    def total_lines(self) -> int:
        return sum(self.lines)

    def merge(self, shares: Sequence[Tuple[np.ndarray, int]]) -> Survey:
        """Return the survey with the pieces and cut lines of all workers' shares added up."""
        pieces, cut = zip(*shares)
        return replace(self, pieces=np.sum(pieces, axis=0), cut=sum(cut))


def survey(
    text: Text,
    encode: Callable[[str], Sequence[int]],
    *,
    num_pieces: int,
    max_pieces: int,
    max_held_out: int,
    rank: int = 0,
    num_workers: int = 1,
    heartbeat: Callable[[str], None] = lambda _: None,
) -> Tuple[Text, Survey]:
    """Survey a text: every worker reads all lines, and splits its own share into pieces.

    Args:
        encode: a function from a line to its piece ids, without [CLS] and [SEP].
        max_pieces: of a line, with [CLS] and [SEP]; pieces that are cut off are not counted.
        max_held_out: number of held-out lines that are kept.

    Returns: the text with its held-out lines, and the counts; pieces are counted in this share
        alone.
    """
    sample, sha = Sample(max_held_out), hashlib.sha256()
    pieces = np.zeros(num_pieces, np.int64)  # (V,)
    waiting: List[int] = []
    lines: List[int] = []
    seen = cut = 0
    for path in text.paths:
        before = seen
        for line in lines_of(path):
            value = digest(line)
            if text.holds_out(value):
                sample.add(value, line)
                continue
            sha.update(f"{line}\n".encode())
            if seen % num_workers == rank:
                ids = encode(line)
                cut += len(ids) > max_pieces - 2
                waiting += ids[: max_pieces - 2]
                if len(waiting) > _COUNTED_AT_ONCE:
                    pieces += np.bincount(waiting, minlength=num_pieces)
                    waiting = []
            seen += 1
            if seen % _HEARTBEAT_EVERY == 0:
                heartbeat(f"counting the text, line {seen}")
        lines.append(seen - before)
    pieces += np.bincount(waiting, minlength=num_pieces) if waiting else 0
    text = text if text.held_out else replace(text, held_out=sample.lines())
    if not text.held_out:
        raise UserError(
            "text.held_out_fraction: it holds out no line of this text; raise it, or name a file "
            "with text.held_out"
        )
    return text, Survey(tuple(lines), sha.hexdigest()[:16], pieces, cut)
