"""The model of the task: a network that scores the next piece."""

from __future__ import annotations

from collections import Counter
from typing import Any, Dict, Iterable, Iterator, Optional, Sequence, Tuple

import mxnet as mx
import numpy as np
from mxnet import gluon

from edp_mx.data.batching import Batch
from edp_mx.data.tokenizer import Tokenizer
from edp_mx.data.utterance import Utterance
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.models.frozen import context_of
from edp_mx.tasks.causal_lm.decoding import Decoding, continuations, told
from edp_mx.tasks.causal_lm.scores import predicted, predicted_words
from edp_mx.tasks.causal_lm.task import Continued
from edp_mx.tasks.model import TaskModel, scores_of_losses


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

    @property
    def most_continued(self) -> int:
        """See `TaskModel`: there is room for `answering.max_pieces`, at most half the positions."""
        positions = self.encoder.max_positions
        return positions + 1 - min(self.answering.max_pieces, positions // 2)

    def upon(self, encoder: Any) -> CausalLM:
        return CausalLM(encoder, self._tokenizer)

    def loss(self, batch: Batch) -> mx.nd.NDArray:
        """Return the sum of −ln p(true piece) over the predicted pieces of each text, (N,)."""
        _, _, losses, _ = self._guess(batch)
        return losses.sum(axis=1)

    def forward(self, batch: Batch) -> Tuple[Optional[mx.nd.NDArray], mx.nd.NDArray]:
        """Return scores of two labels: all pieces are guessed, or not. Shapes: (N, 2)."""
        return None, scores_of_losses(self.loss(batch))

    def guesses(self, batches: Iterable[Batch]) -> Iterator[np.ndarray]:
        """Yield Σ −ln p(true piece), the numbers of right guesses, pieces and words, (4,)."""
        for batch in batches:
            with mx.autograd.pause(train_mode=False):
                places, targets, losses, likeliest = self._guess(batch)
            loss = losses.asnumpy().sum(dtype=np.float64)
            right = (likeliest.asnumpy() == targets).sum()
            words = predicted_words(batch, places)
            yield np.array([loss, right, (targets >= 0).sum(), words])

    def answers(
        self, batches: Iterable[Batch], asked: Sequence[Utterance], vocabulary: Vocabulary
    ) -> Iterator[Tuple[int, Continued]]:
        """See `TaskModel`: what comes behind a text, as `answering` says."""
        assert vocabulary.tokenizer is not None
        text_of = vocabulary.tokenizer.text_of
        step, heard = self.encoder.step, self.heard if len(asked) == 1 else None
        if heard is not None and self.answering.beams == 1:
            tokens = asked[0].tokens
            step = told(step, lambda ids: heard(Continued(tokens, text_of(ids))))
        before: Counter[bytes] = Counter()
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
                    asked=before,
                )
                for row, ids in zip(rows, found):
                    index = int(batch.indices[row])
                    answer = Continued(asked[index].tokens, text_of(ids))
                    if heard is not None:
                        heard(answer)  # with the last piece, behind which no step was made
                    yield index, answer

    def _guess(self, batch: Batch) -> Tuple[np.ndarray, np.ndarray, mx.nd.NDArray, mx.nd.NDArray]:
        """Return `predicted`'s places and pieces, their losses and the likeliest pieces there.

        Shapes: (N, R) each; 0 at padding.
        """
        places, targets = predicted(batch.pieces, end=self._end, is_cut=batch.is_cut)
        context = context_of(self.encoder)
        asked = (mx.nd.array(each, ctx=context, dtype="float32") for each in (places, targets))
        losses, likeliest = self.encoder(*self.encoder.inputs(batch, context), *asked)
        return places, targets, losses, likeliest
