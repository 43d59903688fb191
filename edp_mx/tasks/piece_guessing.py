"""What the tasks that guess pieces of plain text have in common."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, Mapping, Optional, Sequence, Tuple

import numpy as np

from edp_mx.data.utterance import Utterance
from edp_mx.tasks.task import Metric, Scores, Shortfall, Task

if TYPE_CHECKING:
    from edp_mx.data.vocabulary import Vocabulary

NOTHING_LEARNED = 0.8  # of the perplexity by frequency; above it nothing was learned
PERPLEXITY = Metric("perplexity", "perplexity", "perplexity", is_error=True, is_share=False)


class PieceGuessing(Task):
    """A task without labels; the constant answer guesses each piece by how often it occurs.

    A run of it is a start for others.

    Attributes:
        add_up: the scores of (3,) of each batch: Σ −ln p(true piece), right guesses, and places.
        by_frequency: those of references, each piece guessed by how often it occurs in them.
    """

    has_slots = has_labels = False
    is_start = True
    label = "a label"
    add_up: Callable[[Iterable[np.ndarray]], Scores]
    by_frequency: Callable[[Sequence[Utterance], Any], Scores]

    def score(
        self,
        references: Sequence[Utterance],  # noqa: ARG002
        guesses: Iterable[Any],
        vocabulary: Vocabulary,  # noqa: ARG002
    ) -> Scores:
        return self.add_up(guesses)

    def constant_answer(
        self, references: Sequence[Utterance], vocabulary: Vocabulary
    ) -> Dict[str, Any]:
        """See `Task`: each piece by how often it occurs in the references."""
        assert vocabulary.tokenizer is not None
        return self.shares(self.by_frequency(references, vocabulary.tokenizer).to_dict())

    def describe_constant(self, baseline: Mapping[str, Any]) -> str:  # noqa: ARG002
        return "each piece by its frequency"

    def shortfall(
        self, scores: Mapping[str, Any], baseline: Mapping[str, Any]
    ) -> Optional[Shortfall]:
        found, by_frequency = scores["perplexity"], baseline["perplexity"]
        if found < NOTHING_LEARNED * by_frequency:
            return None
        is_worse = found > by_frequency
        place = "above" if is_worse else "not far below"
        return Shortfall(
            f"Perplexity {found:.1f} is {place} {by_frequency:.1f}, that of guessing each "
            "piece by its frequency",
            f"the model has {'not even learned' if is_worse else 'learned little but'} how often "
            "each piece occurs",
        )


def of_all_places(guesses: Iterable[np.ndarray]) -> Tuple[float, float, int]:
    """Return the perplexity, the share of right guesses and the number of places, NaN if it is 0.

    Shapes: guesses (3,) each: Σ −ln p(true piece), right guesses, and places.
    """
    loss, right, places = np.sum([np.zeros(3), *guesses], axis=0)
    with np.errstate(invalid="ignore"):
        return perplexity_of(loss, places), float(right / places), int(places)


def perplexity_of(loss: float, places: float) -> float:
    """Return exp of the mean loss, at most 10¹⁵, as tables hold it; NaN without places."""
    with np.errstate(invalid="ignore"):
        return float(np.exp(np.minimum(np.divide(loss, places), math.log(1e15))))


def guessed_by_frequency(counts: np.ndarray) -> np.ndarray:
    """Return the guesses (3,) at pieces that know nothing but how often each occurs, (V,)."""
    losses = np.log(max(counts.sum(), 1)) - np.log(np.maximum(counts, 1))  # (V,)
    return np.array([counts @ losses, counts.max(), counts.sum()])
