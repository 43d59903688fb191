"""Checks of ids and lengths: MXNet silently clips an embedding's index that is out of range."""

from __future__ import annotations

import numpy as np

from edp_mx.data.batching import PieceInputs
from edp_mx.errors import UserError


def check_ids(name: str, ids: np.ndarray, bound: int) -> None:
    """Refuse ids outside 0 … bound − 1."""
    low, high = int(ids.min()), int(ids.max())
    if low < 0 or high >= bound:
        raise UserError(
            f"{name}: id {low if low < 0 else high}, but the model knows 0 … {bound - 1}; "
            "use the vocabulary that the model was built with"
        )


def check_pieces(inputs: PieceInputs, *, num_pieces: int, max_positions: int) -> None:
    """Refuse a batch of pieces that the model does not know, or has no positions for."""
    check_lengths(inputs.lengths, inputs.pieces.shape[1])
    check_ids("pieces", inputs.pieces, num_pieces)
    if inputs.pieces.shape[1] > max_positions:
        raise UserError(
            f"an utterance has {inputs.pieces.shape[1]} pieces, but model.max_positions is "
            f"{max_positions}; lower data.max_pieces"
        )


def check_lengths(lengths: np.ndarray, num_tokens: int) -> None:
    """Refuse utterances without tokens or longer than the batch."""
    if lengths.min() < 1 or lengths.max() > num_tokens:
        raise UserError(
            f"lengths: {int(lengths.min())} … {int(lengths.max())}, but each utterance of this "
            f"batch must have 1 … {num_tokens} tokens"
        )
