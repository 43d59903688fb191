"""The pieces that a language model predicts, and its scores there beside those of frequencies."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any, Dict, Iterable, Optional, Sequence, Tuple

import numpy as np

from edp_mx.data.batching import Batch, PieceInputs
from edp_mx.data.tokenizer import Tokenizer
from edp_mx.data.utterance import REPLY, SEPARATOR, Utterance
from edp_mx.tasks.piece_guessing import guessed_by_frequency, of_all_places, perplexity_of


@dataclass(frozen=True)
class NextPieceScores:
    """Scores at the predicted pieces of a corpus.

    Attributes:
        perplexity: exp of the mean of −ln p(true piece).
        piece_accuracy: share of the pieces that were the most likely ones.
        pieces: number of predicted pieces.
        word_perplexity: exp of the sum of −ln p(true piece) ÷ the number of predicted words, of
            which the end of a text is one; it compares models with other pieces.
    """

    perplexity: float
    piece_accuracy: float
    pieces: int
    word_perplexity: float

    def to_dict(self) -> Dict[str, Any]:
        return asdict(self)

    def describe(self) -> str:
        return (
            f"predicted pieces {self.pieces:>8}\n"
            f"perplexity       {self.perplexity:>8.2f}\n"
            f"  per word       {self.word_perplexity:>8.2f}\n"
            f"guessed          {100 * self.piece_accuracy:>7.2f}%"
        )


def predicted(
    inputs: PieceInputs, *, end: int, is_cut: Optional[np.ndarray] = None
) -> Tuple[np.ndarray, np.ndarray]:
    """Return the places of the pieces before those behind each prompt, and the ids of the latter.

    A prompt ends at the last separator (a `<|reply|>`, or what stands between two texts) inside
    the sequence, which is the same piece as the one that closes it; without it all pieces are
    predicted, with the one that closes the sequence.

    Args:
        end: id of the piece that closes a sequence.
        is_cut: (N,), which texts lost their ends: what closes these is not predicted.

    Shapes: → (N, R) int32 each, R the most predicted pieces of a text; ids are −1 behind the last.
    """
    pieces, lengths = inputs.pieces, inputs.lengths  # (N, P), (N,)
    steps = np.arange(pieces.shape[1])
    is_inside = (steps > 0) & (steps < lengths[:, None] - 1)  # (N, P)
    begins = np.where(is_inside & (pieces == end), steps, 0).max(axis=1)  # (N,)
    ends = lengths - 1 if is_cut is None else lengths - 1 - is_cut  # (N,)
    places = begins[:, None] + np.arange(max(1, (ends - begins).max()))  # (N, R)
    is_there = places < ends[:, None]  # (N, R)
    places = np.where(is_there, places, 0)
    targets = np.where(is_there, np.take_along_axis(pieces, places + 1, axis=1), -1)  # (N, R)
    return places.astype(np.int32), targets


def predicted_words(batch: Batch, places: np.ndarray) -> int:
    """Return how many words begin behind the first of the `predicted` places, and how many ends."""
    firsts, is_cut = batch.pieces.firsts, batch.is_cut  # (N, T), (N,)
    ends = len(places) - (0 if is_cut is None else int(is_cut.sum()))
    return int((firsts > places[:, :1]).sum()) + ends


def score_pieces(guesses: Iterable[np.ndarray]) -> NextPieceScores:
    """Add up (4,) of each batch: Σ −ln p(true piece), right guesses, pieces and words."""
    found = np.sum([np.zeros(4), *guesses], axis=0)
    perplexity, accuracy, pieces = of_all_places([found[:3]])
    return NextPieceScores(perplexity, accuracy, pieces, perplexity_of(found[0], found[3]))


def score_frequencies(references: Sequence[Utterance], tokenizer: Tokenizer) -> NextPieceScores:
    """Score guesses that know nothing but how often each piece is predicted in the references."""
    guessed = guessed_by_frequency(_predicted_counts(references, tokenizer))
    words = sum(len(_reply(one.tokens)) + 1 for one in references)
    return score_pieces([np.append(guessed, words)])


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
