"""The task `masked_lm`: pre-training of a BERT on plain text."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Dict, Iterable, Sequence, Tuple

import numpy as np

from edp_mx.data.columnar_corpus import token_counts
from edp_mx.data.tokenizer import Tokenizer
from edp_mx.data.utterance import MASK, Utterance
from edp_mx.errors import UserError
from edp_mx.tasks.piece_guessing import (
    PERPLEXITY,
    PieceGuessing,
    guessed_by_frequency,
    of_all_places,
)
from edp_mx.tasks.task import Metric

if TYPE_CHECKING:
    from edp_mx.data.vocabulary import Vocabulary
    from edp_mx.models.encoder import Encoder, ModelConfig
    from edp_mx.tasks.masked_lm.model import MaskedLM


@dataclass(frozen=True)
class Filled:
    """For each [MASK] of a text, the likeliest pieces and their probabilities, best first."""

    tokens: Tuple[str, ...]
    fillings: Tuple[Tuple[Tuple[str, float], ...], ...]

    def to_dict(self) -> Dict[str, Any]:
        return {"tokens": list(self.tokens), "fillings": [dict(each) for each in self.fillings]}

    def describe(self) -> str:
        if not self.fillings:
            return f"{' '.join(self.tokens)}\n  (write {MASK} where a piece is to be guessed)"
        lines = (", ".join(f"{p}  ({s:.1%})" for p, s in each) for each in self.fillings)
        return "\n".join([" ".join(self.tokens), *(f"  {line}" for line in lines)])

    def line(self) -> str:
        best = iter([each[0][0] for each in self.fillings])
        return " ".join(next(best, MASK) if token == MASK else token for token in self.tokens)


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
        return asdict(self)

    def describe(self) -> str:
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


def score_frequencies(references: Sequence[Utterance], tokenizer: Tokenizer) -> MaskedScores:
    """Score guesses that know nothing but how often each piece occurs in the references.

    All ordinary pieces of the references count as places.
    """
    counts = np.zeros(len(tokenizer), np.int64)  # (V,)
    for token, count in token_counts(references).items():
        np.add.at(counts, tokenizer.ids(token), count)
    counts[list(tokenizer.special_ids)] = 0
    return score_places([guessed_by_frequency(counts)])


class MaskedLanguageModelling(PieceGuessing):
    """Guess masked pieces of plain text."""

    name = "masked_lm"
    metrics = (PERPLEXITY, Metric("masked_accuracy", "masked pieces guessed", "guessed"))
    add_up = staticmethod(score_places)
    by_frequency = staticmethod(score_frequencies)

    def build(self, encoder: Encoder, vocabulary: Vocabulary, config: ModelConfig) -> MaskedLM:
        from edp_mx.tasks.masked_lm.model import MaskedLM

        head = encoder.masked_piece_head() if config.intents == "pooled" else None
        if head is None or vocabulary.tokenizer is None:
            raise UserError(
                "task: masked_lm needs a model that reads word pieces from [CLS] to [SEP], with "
                "model.family: bert and model.intents: pooled"
            )
        return MaskedLM(encoder, head, vocabulary.tokenizer)


MASKED_LM = MaskedLanguageModelling()
