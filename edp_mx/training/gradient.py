"""From the draws of a sampler to the losses of units, which a clipping differentiates."""

from __future__ import annotations

import hashlib
from functools import partial
from typing import Iterator, List, Sequence

import mxnet as mx

from edp_mx.data.draws import Draw, Sampler
from edp_mx.data.encoding import EncodedCorpus
from edp_mx.models.intent_slot import IntentSlotModel
from edp_mx.privacy.clipping import Losses
from edp_mx.privacy.mechanism import AnyMechanism
from edp_mx.training.units import UnitBatch, chunks_of, places_of, unit_batch


class UnitLosses:
    """The losses of the units of each step, in chunks as the mechanism's clipping takes them.

    The loss of a micro-batch is the sum over its records, divided by its public size |M|, never by
    how many were drawn: that divisor would change with a record. The loss of an utterance is its
    own, that of a user the sum over their utterances.

    Args:
        model: what is trained.
        corpus: the training part.
        sampler: whose draws are given; says what a unit is, and |M|.
        mechanism: says how large a chunk may be, and has the secret key of dropout's masks.
        seed: of the masks of micro-batches.
        rank: of this worker.

    Guarantee: what a unit's loss depends on besides the weights and its own records is its mask.
        One micro-batch at a time (loop), the masks are a function of (seed, lane, epoch, step), the
        lane being the micro-batch's number over all workers: those of as many single workers, and
        nothing of the data is in them. One utterance or user at a time, they are a function of its
        own records, the step and a secret key, so that who else is drawn does not reach its
        gradient. In chunks of several units a mask's place depends on who is beside it; there the
        masks of all rows are independent of each other and unknown to whoever lacks the key, which
        makes the step a mixture, over the masks, of steps that are private each.
    """

    def __init__(
        self,
        model: IntentSlotModel,
        corpus: EncodedCorpus,
        *,
        sampler: Sampler,
        mechanism: AnyMechanism,
        seed: int,
        rank: int,
    ) -> None:
        is_micro_batch = sampler.unit == "micro_batch"
        self._model, self._corpus, self._lengths = model, corpus, corpus.lengths  # (records,)
        self._divisor = sampler.micro_batch_size if is_micro_batch else 1.0
        self._chunk_size = mechanism.clipping.chunk_size
        # Not by how many units are in a chunk: that may depend on the data.
        is_public = self._chunk_size == 1 or not mechanism.mask_key
        self._has_public_masks = is_micro_batch and is_public
        self._first_lane = rank * sampler.micro_batches_per_worker
        self._mask_key = int.from_bytes(mechanism.mask_key, "big")
        self._seed, self._rank = seed, rank

    def batches(self, draw: Draw) -> List[UnitBatch]:
        """What `__call__` wants of a draw; any thread may make it."""
        units = draw.units()
        chunks = chunks_of(draw, self._lengths, chunk_size=self._chunk_size)
        return [unit_batch(self._corpus, [units[j] for j in c], first=c[0]) for c in chunks]

    def __call__(self, batches: Sequence[UnitBatch], *, epoch: int, step: int) -> Iterator[Losses]:
        """What makes the losses (U,) of each chunk, the same at every call.

        Args:
            batches: of one step; none (Poisson sampling) make none.
            epoch, step: of which the masks of dropout are a function.
        """
        for chunk in batches:
            masks = (self._mask_key, self._seed, self._rank, epoch, step, *places_of(chunk))
            if self._has_public_masks:
                masks = (self._seed, self._first_lane + chunk.first, epoch, step)
            yield partial(self._losses, chunk, masks)

    def _losses(self, chunk: UnitBatch, masks: Sequence[int]) -> mx.nd.NDArray:
        """Those of a chunk, (U,)."""
        seed_dropout(*masks)
        losses = self._model.loss(chunk.batch)  # (R,)
        if chunk.weights is not None:
            losses = losses * mx.nd.array(chunk.weights, ctx=losses.context)
        if len(losses) != chunk.num_units:
            losses = losses.reshape((chunk.num_units, -1)).sum(axis=1)  # (U,)
        return losses if self._divisor == 1 else losses / self._divisor


def seed_dropout(*place: int) -> None:
    """Make the dropout masks of a step a function of its place (seed, lane, epoch, step) alone.

    MXNet's generator moves on by the size of what it fills. Left to itself it would carry the
    length of one utterance into the masks of all later steps of its worker, around the clipping,
    and a record would no longer count once an epoch. A hash, because MXNet's streams for seeds
    that lie close together overlap.
    """
    digest = hashlib.sha256(repr(place).encode()).digest()
    mx.random.seed(int.from_bytes(digest[:4], "big") >> 1)
