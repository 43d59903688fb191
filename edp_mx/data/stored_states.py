"""Stored outputs of a model's frozen part: computed once, read batch by batch."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Iterable, Optional, Tuple

import numpy as np

from edp_mx.data.batching import Read, StateInputs, gather


@dataclass(frozen=True, eq=False)
class StoredStates:
    """The rows of each utterance, one after the other, in a file that is mapped into memory.

    The file has no name: it goes when the process ends, however that happens.

    Shapes: rows (all rows, H) float32; starts, counts (U,): utterance u has the rows from
        `starts[u]`.
    """

    rows: np.ndarray
    starts: np.ndarray
    counts: np.ndarray

    @classmethod
    def write(
        cls,
        made: Iterable[Tuple[np.ndarray, np.ndarray, np.ndarray]],
        *,
        num_utterances: int,
        folder: Optional[Path] = None,
    ) -> StoredStates:
        """Store the states of all utterances.

        Args:
            made: places, counts and states, in any order; rows beyond the counts are padding.
                Several places may share the states of one utterance.
            folder: of the nameless file; the system's folder of such files by default.

        Shapes: made: (M,), (M,), (M, R, H), or for shared states (M,), (1,), (1, R, H).
        """
        starts, counts = np.zeros((2, num_utterances), np.int64)
        width = num_rows = 0
        with tempfile.TemporaryFile(dir=folder) as file:
            for places, kept, states in made:
                is_row = np.arange(states.shape[1]) < kept[:, None]  # (M, R)
                file.write(states[is_row].astype(np.float32).tobytes())
                starts[places] = num_rows + np.cumsum(kept) - kept
                counts[places] = kept
                num_rows, width = num_rows + int(kept.sum()), states.shape[2]
            file.flush()
            rows = np.zeros((0, width), np.float32)
            if num_rows:
                rows = np.memmap(file, np.float32, "r", shape=(num_rows, width))
        return cls(rows, starts, counts)

    def of(self, index: int) -> np.ndarray:
        """Return the states of one utterance, (rows, H)."""
        start = self.starts[index]
        return self.rows[start : start + self.counts[index]]

    def inputs(self, indices: np.ndarray, read: Read) -> StateInputs:
        """Return the states of some utterances, padded with zeros.

        Args:
            indices: places of the utterances, (M,).
        """
        counts = self.counts[indices]
        places, is_row = gather(self.starts[indices], counts, int(counts.max(initial=1)))
        states = self.rows[places]  # (M, R, H)
        states[~is_row] = 0
        return StateInputs(states, read)
