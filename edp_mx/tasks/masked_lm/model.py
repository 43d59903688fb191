"""The model of the task: a BERT and its masked-LM head."""

from __future__ import annotations

from typing import Dict, Iterable, Iterator, Optional, Sequence, Tuple

import mxnet as mx
import numpy as np
from mxnet import gluon

from edp_mx.data.batching import Batch, PieceInputs
from edp_mx.data.tokenizer import Tokenizer
from edp_mx.data.utterance import Utterance
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.models.encoder import Encoder
from edp_mx.tasks.masked_lm.masking import Maskable, MaskedBatch, mask
from edp_mx.tasks.masked_lm.task import Filled
from edp_mx.tasks.model import TaskModel, probabilities, scores_of_losses

SHOWN = 3  # pieces for each [MASK]
_EVALUATION = 0x3B  # the use of the seed of masks here


class MaskedLM(TaskModel):
    """A BERT and the head that guesses masked pieces; the pooler is not trained.

    The masks of a training step are drawn from MXNet's generator, as the dropout's are, so that
    they are a function of what `dp.unit_losses` seeds it with. In an evaluation, the masks of an
    utterance are the same each time.

    Source: Devlin et al. 2019, section 3.1.
    """

    reads_tokens = True
    reads_stored_states = False
    why_no_ghost = "the masked-LM head shares the vectors of the pieces with the embedding"

    def __init__(self, encoder: Encoder, head: gluon.HybridBlock, tokenizer: Tokenizer) -> None:
        super().__init__(prefix="")
        self.encoder, self.head = encoder, head
        self.head_values = encoder.initial_values
        ids = tokenizer.special_ids
        self._maskable = Maskable(num_pieces=len(tokenizer), mask_id=ids.mask, special_ids=ids)

    @property
    def heads(self) -> Dict[str, gluon.Block]:
        return {"pieces": self.head}

    def tensors(self) -> Dict[str, gluon.Parameter]:
        return self.head.tensors()

    def loss(self, batch: Batch) -> mx.nd.NDArray:
        """Return the sum of −ln p(true piece) over the masked places of each utterance, (N,)."""
        seed = int(mx.nd.random.randint(0, 2**31 - 1, shape=(1,)).asscalar())
        return self._losses(batch, np.random.default_rng(seed))

    def forward(self, batch: Batch) -> Tuple[Optional[mx.nd.NDArray], mx.nd.NDArray]:
        """Return scores of two labels: all masked pieces are guessed, or not. Shapes: (N, 2)."""
        return None, scores_of_losses(self._losses(batch, _generator(batch)))

    def guesses(self, batches: Iterable[Batch]) -> Iterator[np.ndarray]:
        """Yield Σ −ln p(true piece), the numbers of right guesses and of places, (3,)."""
        for batch in batches:
            with mx.autograd.pause(train_mode=False):
                masked, log_probabilities, true = self._guess(batch, _generator(batch))
                best = log_probabilities.argmax(axis=1).asnumpy()  # (K,)
            counts = masked.counts.astype(np.float64)  # (K,)
            right = counts[best == masked.targets].sum()
            yield np.array([-(true.asnumpy() @ counts), right, counts.sum()])

    def answers(
        self, batches: Iterable[Batch], asked: Sequence[Utterance], vocabulary: Vocabulary
    ) -> Iterator[Tuple[int, Filled]]:
        """See `TaskModel`: the likeliest pieces at each [MASK] of a text."""
        assert vocabulary.tokenizer is not None
        names = vocabulary.tokenizer.pieces
        for batch in batches:
            inputs = batch.pieces
            places = np.stack(np.nonzero(inputs.pieces == self._maskable.mask_id))  # (2, K)
            shares = np.zeros((0, len(names)))  # (K, V)
            if places.size:
                with mx.autograd.pause(train_mode=False):
                    scores = self._scores(inputs, places.astype(np.int32))
                shares = probabilities(scores.asnumpy())
            for row, index in enumerate(batch.indices.tolist()):
                likeliest = np.argsort(-shares[places[0] == row], axis=1)[:, :SHOWN]
                here = zip(likeliest, shares[places[0] == row])
                fillings = tuple(tuple((names[i], float(p[i])) for i in best) for best, p in here)
                yield index, Filled(asked[index].tokens, fillings)

    def _guess(
        self, batch: Batch, generator: np.random.Generator
    ) -> Tuple[MaskedBatch, mx.nd.NDArray, mx.nd.NDArray]:
        """Mask a batch; return the log-probabilities of all pieces at its K places, and the true.

        Shapes: → (K, V), (K,).
        """
        masked = mask(batch.pieces, self._maskable, generator=generator)
        inputs = batch.pieces._replace(pieces=masked.pieces)
        log_probabilities = mx.nd.log_softmax(self._scores(inputs, masked.places), axis=-1)
        targets = mx.nd.array(masked.targets, ctx=log_probabilities.context, dtype="int32")
        return masked, log_probabilities, mx.nd.pick(log_probabilities, targets)

    def _scores(self, inputs: PieceInputs, places: np.ndarray) -> mx.nd.NDArray:
        """Return the scores of all pieces at some places. Shapes: (2, K) → (K, V)."""
        states, vectors = self.encoder.piece_states(inputs)  # (N, P, H), (V, H)
        return self.head(states, mx.nd.array(places, ctx=vectors.context, dtype="int32"), vectors)

    def _losses(self, batch: Batch, generator: np.random.Generator) -> mx.nd.NDArray:
        """Return the sum of the masked places' losses for each utterance, (N,)."""
        masked, _, true = self._guess(batch, generator)
        is_of = np.arange(len(masked.lengths))[:, None] == masked.places[0]  # (N, K)
        return -mx.nd.dot(mx.nd.array(is_of * masked.counts, ctx=true.context), true)


def _generator(batch: Batch) -> np.random.Generator:
    """Return the generator of a batch's masks in an evaluation."""
    return np.random.default_rng([_EVALUATION, *batch.indices[:1].tolist()])
