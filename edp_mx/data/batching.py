"""A padded batch of encoded utterances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Union

import numpy as np


class WordInputs(NamedTuple):
    """Inputs of a CLC. Shapes: words (M, T), characters (M, T, C): int32, 0 for none."""

    words: np.ndarray
    characters: np.ndarray


class PieceInputs(NamedTuple):
    """Inputs of a BERT.

    Shapes: pieces (M, P), padded with 0; lengths (M,), with [CLS] and [SEP]; firsts (M, T), the
        place of each token's first piece, 0 if there is no token: int32.
    """

    pieces: np.ndarray
    lengths: np.ndarray
    firsts: np.ndarray


@dataclass(frozen=True, eq=False)
class Batch:
    """M utterances, padded with zeros to the longest; a label that the vocabulary lacks is 0.

    Shapes: lengths (M,), in tokens; slots (M, T), intents (M,): int32; indices (M,): int64, places
        in the corpus.
    """

    inputs: Union[WordInputs, PieceInputs]
    lengths: np.ndarray
    slots: np.ndarray
    intents: np.ndarray
    indices: np.ndarray

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def mask(self) -> np.ndarray:
        """Which places are tokens, (M, T) bool."""
        return np.arange(self.slots.shape[1]) < self.lengths[:, None]  # (M, T)
