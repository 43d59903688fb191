"""The model of the task: a network that scores the next piece."""

from __future__ import annotations

from typing import Any, Dict, Iterable, Iterator, NamedTuple, Optional, Sequence, Tuple

import mxnet as mx
import numpy as np
from mxnet import gluon

from edp_mx.data.batching import Batch
from edp_mx.data.tokenizer import Tokenizer
from edp_mx.data.utterance import Utterance
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.models.frozen import context_of
from edp_mx.tasks.causal_lm.answer import Continued
from edp_mx.tasks.causal_lm.decoding import Decoding, continuations, told
from edp_mx.tasks.causal_lm.predicted import Predicted, predicted
from edp_mx.tasks.model import TaskModel, scores_of_losses


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

    Source: Radford et al. 2019, equation 1; Li et al. 2022, section 3.1.2 and appendix H for C.
    """

    reads_tokens = True
    encoder: Any  # which scores the next piece
    answering: Decoding

    def __init__(self, scorer: Any, tokenizer: Tokenizer) -> None:
        super().__init__(prefix="")
        self.encoder = scorer
        self.answering = Decoding()
        self._tokenizer = tokenizer
        self._end = tokenizer.special_ids.sep

    @property
    def heads(self) -> Dict[str, gluon.Block]:
        """See `TaskModel`: there are none."""
        return {}

    def upon(self, encoder: Any) -> CausalLM:
        """See `TaskModel`."""
        return CausalLM(encoder, self._tokenizer)

    def loss(self, batch: Batch) -> mx.nd.NDArray:
        """Return the sum of −ln p(true piece) over the predicted pieces of each text, (N,)."""
        return -self._guess(batch).true.sum(axis=1)

    def forward(self, batch: Batch) -> Tuple[Optional[mx.nd.NDArray], mx.nd.NDArray]:
        """Return scores of two labels: all pieces are guessed, or not. Shapes: (N, 2)."""
        return None, scores_of_losses(self.loss(batch))

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
        """See `TaskModel`: what comes behind a text, as `answering` says."""
        assert vocabulary.tokenizer is not None
        text_of = vocabulary.tokenizer.text_of
        step, heard = self.encoder.step, self.heard
        if heard is not None and len(asked) == 1 and self.answering.beams == 1:
            tokens = asked[0].tokens
            step = told(step, lambda ids: heard(Continued(tokens, text_of(ids))))
        for batch in batches:
            pieces, lengths, _ = batch.pieces
            for length in np.unique(lengths).tolist():
                (rows,) = np.nonzero(lengths == length)
                found = continuations(
                    step,
                    pieces[rows, : length - 1],  # without the piece that closes it
                    self.answering,
                    end=self._end,
                    room=self.encoder.max_positions - (length - 1),
                    context=context_of(self.encoder),
                )
                for row, ids in zip(rows, found):
                    index = int(batch.indices[row])
                    yield index, Continued(asked[index].tokens, text_of(ids))

    def _guess(self, batch: Batch) -> Guessed:
        """Score all pieces at the predicted places."""
        found = predicted(batch.pieces, end=self._end)
        log_probabilities = mx.nd.log_softmax(self._scores(batch, found.places), axis=-1)
        context = log_probabilities.context
        targets = mx.nd.array(found.targets, ctx=context, dtype="int32")
        true = mx.nd.pick(log_probabilities, targets, axis=2)  # (N, R)
        return Guessed(found, log_probabilities, true * mx.nd.array(found.counts, ctx=context))

    def _scores(self, batch: Batch, places: np.ndarray) -> mx.nd.NDArray:
        """Return the scores of all pieces behind some places. Shapes: (N, R) → (N, R, V)."""
        context = context_of(self.encoder)
        before = mx.nd.array(places, ctx=context, dtype="float32")
        return self.encoder(*self.encoder.inputs(batch, context), before)
