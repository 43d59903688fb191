"""The model of the task: a network that scores the next piece."""

from __future__ import annotations

from typing import Dict, Iterable, Iterator, NamedTuple, Optional, Sequence, Tuple

import mxnet as mx
import numpy as np
from mxnet import gluon

from edp_mx.data.batching import Batch, PieceInputs
from edp_mx.data.tokenizer import Tokenizer
from edp_mx.data.utterance import Utterance
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.models.encoder import Encoder
from edp_mx.tasks.causal_lm.answer import Continued
from edp_mx.tasks.causal_lm.predicted import Predicted, predicted
from edp_mx.tasks.model import TaskModel, probabilities

SHOWN = 5  # pieces that may come next


class Guessed(NamedTuple):
    """The predicted pieces of a batch, with the log-probabilities of all pieces at each.

    Shapes: log_probabilities (N, R, V) · true (N, R), those of the true pieces, 0 at padding.
    """

    predicted: Predicted
    log_probabilities: mx.nd.NDArray
    true: mx.nd.NDArray


class CausalLM(TaskModel):
    """A language model, which has no parameters but its network's.

    The loss of a text is the sum over its predicted pieces, −ln p(text | prompt), not their mean.
    It is what the perplexity is the mean of, and the sum over the texts of a micro-batch or of a
    user is then that of all their pieces. Where each text is clipped at a C far below the norms,
    as Li et al. fine-tune (C = 0.1), sum and mean give the same step: a clipped gradient has the
    norm C, whatever its loss was multiplied by.

    Source: Radford et al. 2019, equation 1; Li et al. 2022, appendix H for C.
    """

    reads_tokens = True
    reads_stored_states = False

    def __init__(self, scorer: Encoder, tokenizer: Tokenizer) -> None:
        super().__init__(prefix="")
        self.encoder = scorer
        self._end = tokenizer.special_ids.sep

    @property
    def heads(self) -> Dict[str, gluon.Block]:
        """See `TaskModel`: there are none."""
        return {}

    def loss(self, batch: Batch) -> mx.nd.NDArray:
        """Return the sum of −ln p(true piece) over the predicted pieces of each text, (N,)."""
        return -self._guess(batch).true.sum(axis=1)

    def forward(self, batch: Batch) -> Tuple[Optional[mx.nd.NDArray], mx.nd.NDArray]:
        """Return scores of two labels: all pieces are guessed, or not. Shapes: (N, 2)."""
        losses = self.loss(batch)  # (N,)
        others = mx.nd.log(1 - mx.nd.exp(-mx.nd.maximum(losses, 1e-6)))  # (N,)
        return None, mx.nd.stack(-losses, others, axis=1)

    def guesses(self, batches: Iterable[Batch]) -> Iterator[np.ndarray]:
        """Yield Σ −ln p(true piece), the numbers of right guesses and of pieces, (3,)."""
        for batch in batches:
            with mx.autograd.pause(train_mode=False):
                found, log_probabilities, true = self._guess(batch)
                best = log_probabilities.argmax(axis=2).asnumpy()  # (N, R)
            right = found.counts[best == found.targets].sum()
            loss = -true.asnumpy().sum(dtype=np.float64)
            yield np.array([loss, right, found.counts.sum()])

    def answers(
        self,
        batches: Iterable[Batch],
        asked: Sequence[Utterance],
        vocabulary: Vocabulary,
    ) -> Iterator[Tuple[int, Continued]]:
        """See `TaskModel`: the likeliest pieces behind a text."""
        assert vocabulary.tokenizer is not None
        names = vocabulary.tokenizer.pieces
        for batch in batches:
            lasts = _pieces(batch).lengths[:, None] - 2  # (N, 1): the closing piece is not there
            with mx.autograd.pause(train_mode=False):
                scores = self._scores(batch, lasts)  # (N, 1, V)
            shares = probabilities(scores.asnumpy()[:, 0])  # (N, V)
            for index, row in zip(batch.indices.tolist(), shares):
                best = np.argsort(-row)[:SHOWN]
                likely = tuple((names[i], float(row[i])) for i in best)
                yield index, Continued(asked[index].tokens, likely)

    def _guess(self, batch: Batch) -> Guessed:
        """Score all pieces at the predicted places."""
        found = predicted(_pieces(batch), end=self._end)
        log_probabilities = mx.nd.log_softmax(self._scores(batch, found.places), axis=-1)
        context = log_probabilities.context
        targets = mx.nd.array(found.targets, ctx=context, dtype="int32")
        true = mx.nd.pick(log_probabilities, targets, axis=2)  # (N, R)
        return Guessed(found, log_probabilities, true * mx.nd.array(found.counts, ctx=context))

    def _scores(self, batch: Batch, places: np.ndarray) -> mx.nd.NDArray:
        """Return the scores of all pieces behind some places. Shapes: (N, R) → (N, R, V)."""
        context = next(iter(self.collect_params().values())).list_ctx()[0]
        before = mx.nd.array(places, ctx=context, dtype="float32")
        return self.encoder(*self.encoder.inputs(batch, context), before)


def _pieces(batch: Batch) -> PieceInputs:
    """Return the inputs, which are pieces."""
    assert isinstance(batch.inputs, PieceInputs)
    return batch.inputs
