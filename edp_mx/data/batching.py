"""A padded batch of encoded utterances."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Optional

import numpy as np


@dataclass(frozen=True, eq=False)
class Batch:
    """M utterances, padded with zeros to the longest of them.

    Shapes:
        words (M, T), characters (M, T, C), lengths (M,), slots (M, T), intents (M,): int32;
        indices (M,): int64, places in the corpus; is_known (M,): bool.

    Edge cases:
        A label that the vocabulary lacks is 0 here and makes `is_known` False: such an utterance
        has no true loss. It is never in the training part.
    """

    words: np.ndarray
    characters: np.ndarray
    lengths: np.ndarray
    slots: np.ndarray
    intents: np.ndarray
    indices: np.ndarray
    is_known: Optional[np.ndarray] = field(default=None)

    def __post_init__(self) -> None:
        if self.is_known is None:
            object.__setattr__(self, "is_known", np.ones(len(self.words), dtype=bool))

    def __len__(self) -> int:
        return len(self.words)

    @property
    def mask(self) -> np.ndarray:
        """(M, T) bool: which places are tokens."""
        return np.arange(self.words.shape[1]) < self.lengths[:, None]  # (M, T)
