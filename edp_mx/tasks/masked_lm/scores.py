"""Scores of a masked language model, and of guessing pieces by how often they occur."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Dict, Iterable, Sequence

import numpy as np

from edp_mx.data.columnar_corpus import token_counts
from edp_mx.data.tokenizer import Tokenizer
from edp_mx.data.utterance import Utterance
from edp_mx.errors import UserError
from edp_mx.tasks.piece_guessing import guessed_by_frequency, of_all_places


@dataclass(frozen=True)
class MaskedScores:
    """Scores at the masked places of a corpus.

    Attributes:
        perplexity: exp of the mean of −ln p(true piece).
        masked_accuracy: share of the places whose most likely piece is the true one.
        places: number of masked places.
    """

    perplexity: float
    masked_accuracy: float
    places: int

    def to_dict(self) -> Dict[str, Any]:
        """Return all fields, for JSON."""
        return asdict(self)

    def describe(self) -> str:
        """Return lines for the console."""
        return (
            f"masked pieces    {self.places:>8}\n"
            f"perplexity       {self.perplexity:>8.2f}\n"
            f"guessed          {100 * self.masked_accuracy:>7.2f}%"
        )


def score_places(guesses: Iterable[np.ndarray]) -> MaskedScores:
    """Add up (3,) of each batch: Σ −ln p(true piece), right guesses, and places."""
    perplexity, share, places = of_all_places(guesses)
    if not places:
        raise UserError(
            "no piece of the text can be masked: the word pieces spell none of its words; learn "
            "them from this text (data.vocabulary.source: train)"
        )
    return MaskedScores(perplexity, share, places)


def score_frequencies(
    references: Sequence[Utterance], train: Sequence[Utterance], tokenizer: Tokenizer
) -> MaskedScores:
    """Score guesses that know nothing but how often each piece occurs in the training part.

    One is added to the count of each ordinary piece. All pieces of the references count as places.
    """
    seen = _piece_counts(train, tokenizer) + 1  # (V,)
    seen[list(tokenizer.special_ids)] = 0
    wanted = np.where(seen, _piece_counts(references, tokenizer), 0)  # (V,)
    return score_places([guessed_by_frequency(wanted, seen)])


def _piece_counts(utterances: Sequence[Utterance], tokenizer: Tokenizer) -> np.ndarray:
    """Count the occurrences of each piece, (V,)."""
    counts = np.zeros(len(tokenizer), np.int64)
    for token, count in token_counts(utterances).items():
        np.add.at(counts, tokenizer.ids(token), count)
    return counts
