"""Checks of ids and lengths: MXNet silently clips an embedding's index that is out of range."""

from __future__ import annotations

import numpy as np

from edp_mx.errors import UserError


def check_ids(name: str, ids: np.ndarray, bound: int) -> None:
    """Refuse ids outside 0 … bound − 1."""
    low, high = int(ids.min()), int(ids.max())
    if low < 0 or high >= bound:
        raise UserError(
            f"{name}: id {low if low < 0 else high}, but the model knows 0 … {bound - 1}; "
            "use the vocabulary that the model was built with"
        )


def check_lengths(lengths: np.ndarray, num_tokens: int) -> None:
    """Refuse utterances without tokens or longer than the batch."""
    if lengths.min() < 1 or lengths.max() > num_tokens:
        raise UserError(
            f"lengths: {int(lengths.min())} … {int(lengths.max())}, but each utterance of this "
            f"batch must have 1 … {num_tokens} tokens"
        )
