"""How well masked pieces of the held-out text are guessed."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Callable, Dict, Sequence

import numpy as np

from edp_mx.data.masking import MaskedBatch
from edp_mx.errors import UserError
from edp_mx.models.pretraining import MaskedLanguageModel
from edp_mx.runtime.distributed import Workers


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

    def to_dict(self) -> Dict[str, float]:
        """Plain numbers by name."""
        return asdict(self)

    def describe(self) -> str:
        """One line for people."""
        return (
            f"held-out perplexity {self.perplexity:.2f} (unigram {self.unigram_perplexity:.1f}), "
            f"{self.masked_accuracy:.2f} % guessed"
        )


def score(
    model: MaskedLanguageModel,
    batches: Sequence[MaskedBatch],
    unigram_loss: float,
    workers: Workers,
    heartbeat: Callable[[], None] = lambda: None,
) -> MaskedScores:
    """Scores the held-out text, with all workers at it.

    Args:
        batches: this worker's share.
        unigram_loss: the sum over the places of this share.
        heartbeat: told before each batch.

    Raises:
        UserError: nothing is masked in any share.
    """
    sums = np.array([0.0, 0.0, 0.0, unigram_loss])  # loss, right guesses, places, unigram loss
    for batch in batches:
        heartbeat()
        sums[:3] += model.guess(batch)
    loss, right, places, unigram = np.sum(workers.gather(sums), axis=0)
    if not places:
        raise UserError(
            "text.held_out: no word of the held-out lines can be spelled with the word pieces"
        )
    with np.errstate(over="ignore"):
        perplexity, of_unigrams = np.exp([loss / places, unigram / places])
    return MaskedScores(float(perplexity), float(of_unigrams), float(100 * right / places))
