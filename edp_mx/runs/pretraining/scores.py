"""Loss and speed while it trains, and how well masked pieces of held-out text are guessed."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Sequence

import mxnet as mx
import numpy as np

from edp_mx.data.masking import MaskedBatch
from edp_mx.errors import UserError
from edp_mx.models.pretraining import MaskedLanguageModel
from edp_mx.runtime.distributed import Workers
from edp_mx.runtime.progress import Heartbeat, no_heartbeat


class Window:
    """Loss and speed of this worker since the last line of the log."""

    def __init__(self, context: mx.Context) -> None:
        self._loss = mx.nd.zeros((1,), ctx=context)
        self._pieces = self._steps = 0
        self._started = time.perf_counter()

    def add(self, loss: mx.nd.NDArray, pieces: int) -> None:
        """Add a step and its loss (1,), without waiting for it."""
        self._loss += loss
        self._pieces += pieces
        self._steps += 1

    def means(self) -> np.ndarray:
        """Return the mean loss and the pieces per second, (2,)."""
        loss = self._loss.asscalar() / self._steps
        return np.array([loss, self._pieces / (time.perf_counter() - self._started)])


NOTHING_LEARNED = 0.8  # a perplexity above this share of the unigrams' has learned nothing


@dataclass(frozen=True)
class MaskedScores:
    """On the masked places of the held-out text.

    Attributes:
        perplexity: exp of the mean of −ln p(true piece).
        unigram_perplexity: the same for p = the piece's share of the training text.
        masked_accuracy: per cent of places where the best guess is true.
    """

    perplexity: float
    unigram_perplexity: float
    masked_accuracy: float

    def describe(self) -> str:
        """Return one line for people, which says so if nothing was learned."""
        line = (
            f"held-out perplexity {self.perplexity:.2f} (unigram {self.unigram_perplexity:.1f}), "
            f"{self.masked_accuracy:.2f} % guessed"
        )
        if self.perplexity < NOTHING_LEARNED * self.unigram_perplexity:
            return line
        return (
            f"{line}: the model has learned little but how often each piece occurs; if this is "
            "not the beginning, lower pretraining.learning_rate"
        )


def score(
    model: MaskedLanguageModel,
    batches: Sequence[MaskedBatch],
    unigram_loss: float,
    workers: Workers,
    heartbeat: Heartbeat = no_heartbeat,
) -> MaskedScores:
    """Score this worker's share of the held-out text, on all workers together.

    The unigram loss is the sum over the places of this share.
    """
    sums = np.array([0.0, 0.0, 0.0, unigram_loss])  # loss, right guesses, places, unigram loss
    for batch in batches:
        heartbeat("scoring the held-out text")
        sums[:3] += model.guess(batch)
    loss, right, places, unigram = np.sum(workers.gather(sums), axis=0)
    if not places:
        raise UserError(
            "text.held_out: no word of the held-out lines can be spelled with the word pieces"
        )
    with np.errstate(over="ignore"):
        perplexity, of_unigrams = np.exp([loss / places, unigram / places])
    return MaskedScores(float(perplexity), float(of_unigrams), float(100 * right / places))
