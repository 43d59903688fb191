"""From the records of a micro-batch to what the mechanism makes private."""

from __future__ import annotations

import hashlib
from typing import Iterator, List, Optional, Sequence, Tuple, Union

import mxnet as mx
import numpy as np
from mxnet import autograd

from edp_mx.data.batching import Batch
from edp_mx.data.encoding import EncodedCorpus
from edp_mx.models.intent_slot import IntentSlotModel
from edp_mx.privacy.clipping import Losses, PerExampleClipping
from edp_mx.privacy.dp_sgd import DPSGD
from edp_mx.privacy.flat import clear_gradients
from edp_mx.privacy.mechanism import Mechanism


class MeanGradient:
    """One backward pass on a micro-batch: its mean gradient, in the network's own gradients.

    Args:
        model: what is trained.
        corpus: the training part.
        micro_batch_size: |M|, public; losses are summed and divided by it, never by how many
            records were drawn.
    """

    def __init__(
        self, model: IntentSlotModel, corpus: EncodedCorpus, *, micro_batch_size: float
    ) -> None:
        self._model, self._corpus, self._size = model, corpus, micro_batch_size

    def batches(self, indices: np.ndarray) -> List[Batch]:
        """What `__call__` wants of these records; any thread may make it. Shapes: (M,) int64."""
        return [self._corpus.batch(indices)] if len(indices) else []

    def __call__(self, batches: Sequence[Batch], *, place: Tuple[int, ...]) -> mx.nd.NDArray:
        """Makes the gradient.

        Args:
            batches: of the records; none (Poisson sampling) give zero.
            place: (seed, rank, epoch, step), of which the masks of dropout are a function.

        Returns:
            The sum of the losses over |M|, (1,).
        """
        seed_dropout(*place)
        if not batches:
            parameters = list(self._model.collect_params().values())
            clear_gradients(parameters)
            return mx.nd.zeros((1,), ctx=parameters[0].list_ctx()[0])
        with autograd.record():
            loss = self._model.loss(*batches).sum() / self._size  # (1,)
        loss.backward()
        return loss.detach()


class ClippedGradient:
    """The clipped gradients of a micro-batch's records, summed by what DP-SGD releases from.

    Args:
        model, corpus, micro_batch_size: see `MeanGradient`; here only the loss is divided.
        clipping: is given the records' losses in chunks of its own size.
        mask_key: secret, of dropout's masks.

    Guarantee: one record at a time, its masks are a function of its own number and of the step, so
    that who else is drawn does not reach its gradient. In chunks of several a mask's place depends
    on who is beside it; then the masks are independent of each other and unknown to whoever lacks
    the key, which makes the step a mixture, over the masks, of steps that are private each.
    """

    def __init__(
        self,
        model: IntentSlotModel,
        corpus: EncodedCorpus,
        clipping: PerExampleClipping,
        *,
        micro_batch_size: float,
        mask_key: bytes,
    ) -> None:
        self._model, self._corpus, self._size = model, corpus, micro_batch_size
        self._clipping, self._lengths = clipping, corpus.lengths  # (U,)
        self._mask_key = int.from_bytes(mask_key, "big")

    def batches(self, indices: np.ndarray) -> List[Batch]:
        """See `MeanGradient`: one for each chunk.

        Records of similar length are in one chunk, which saves padding; their sum is the same.
        """
        order = indices[np.argsort(self._lengths[indices], kind="stable")]  # (M,)
        size = self._clipping.chunk_size
        return [
            self._corpus.batch(order[start : start + size]) for start in range(0, len(order), size)
        ]

    def __call__(self, batches: Sequence[Batch], *, place: Tuple[int, ...]) -> mx.nd.NDArray:
        """Clips; arguments and returns as of `MeanGradient`."""
        return self._clipping.clip(self._chunks(batches, place)) / self._size

    def _chunks(self, batches: Sequence[Batch], place: Tuple[int, ...]) -> Iterator[Losses]:
        """What makes the losses (n,) of each chunk, the same at every call."""
        for batch in batches:
            masks = (*place, *map(int, batch.indices))

            def losses(batch=batch, masks=masks) -> mx.nd.NDArray:
                seed_dropout(self._mask_key, *masks)
                return self._model.loss(batch)

            yield losses


Gradient = Union[MeanGradient, ClippedGradient]


def gradient_for(
    mechanism: Optional[Mechanism],
    model: IntentSlotModel,
    corpus: EncodedCorpus,
    *,
    micro_batch_size: float,
) -> Gradient:
    """What this mechanism makes private; without one, the mean gradient."""
    if isinstance(mechanism, DPSGD):
        return ClippedGradient(
            model,
            corpus,
            mechanism.clipping,
            micro_batch_size=micro_batch_size,
            mask_key=mechanism.mask_key,
        )
    return MeanGradient(model, corpus, micro_batch_size=micro_batch_size)


def seed_dropout(*place: int) -> None:
    """Makes the dropout masks of a step a function of its place (seed, rank, epoch, step) alone.

    MXNet's generator moves on by the size of what it fills. Left to itself it would carry the
    length of one utterance into the masks of all later steps of its worker, around the clipping,
    and a record would no longer count once an epoch. A hash, because MXNet's streams for seeds
    that lie close together overlap.
    """
    digest = hashlib.sha256(repr(place).encode()).digest()
    mx.random.seed(int.from_bytes(digest[:4], "big") >> 1)
