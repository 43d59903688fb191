"""Scores of a language model at the next piece, and of guessing pieces by how often they occur."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any, Dict, Iterable, Sequence

import numpy as np

from edp_mx.data.tokenizer import Tokenizer
from edp_mx.data.utterance import REPLY, SEPARATOR, Utterance
from edp_mx.tasks.piece_guessing import guessed_by_frequency, of_all_places


@dataclass(frozen=True)
class NextPieceScores:
    """Scores at the predicted pieces of a corpus.

    Attributes:
        perplexity: exp of the mean of −ln p(true piece).
        piece_accuracy: share of the pieces that were the most likely ones.
        pieces: number of predicted pieces.
    """

    perplexity: float
    piece_accuracy: float
    pieces: int

    def to_dict(self) -> Dict[str, Any]:
        return asdict(self)

    def describe(self) -> str:
        return (
            f"predicted pieces {self.pieces:>8}\n"
            f"perplexity       {self.perplexity:>8.2f}\n"
            f"guessed          {100 * self.piece_accuracy:>7.2f}%"
        )


def score_pieces(guesses: Iterable[np.ndarray]) -> NextPieceScores:
    """Add up (3,) of each batch: Σ −ln p(true piece), right guesses, and pieces."""
    return NextPieceScores(*of_all_places(guesses))


def score_frequencies(
    references: Sequence[Utterance], train: Sequence[Utterance], tokenizer: Tokenizer
) -> NextPieceScores:
    """Score guesses that know nothing but how often each piece is predicted in the training part.

    One is added to the count of each piece.
    """
    seen = _predicted_counts(train, tokenizer) + 1  # (V,)
    return score_pieces([guessed_by_frequency(_predicted_counts(references, tokenizer), seen)])


def _predicted_counts(utterances: Sequence[Utterance], tokenizer: Tokenizer) -> np.ndarray:
    """Count the occurrences of each piece behind the prompts, (V,)."""
    opening: Counter[str] = Counter()
    others: Counter[str] = Counter()
    for utterance in utterances:
        first, *rest = _reply(utterance.tokens) or (None,)
        opening.update([] if first is None else [first])
        others.update(rest)
    counts = np.zeros(len(tokenizer), np.int64)
    for tokens, spelled in ((opening, tokenizer.opening_ids), (others, tokenizer.ids)):
        for token, count in tokens.items():
            np.add.at(counts, spelled(token), count)
    counts[tokenizer.special_ids.sep] += len(utterances)
    return counts


def _reply(tokens: Sequence[str]) -> Sequence[str]:
    """Return the tokens behind the last separator, or all."""
    ends = [place for place, token in enumerate(tokens, 1) if token in (REPLY, SEPARATOR)]
    return tokens[ends[-1] :] if ends else tokens
