"""The text of a pre-training run: read once, then served to each worker as masked batches."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Iterator, List, Sequence, Tuple

import numpy as np

from edp_mx.data.masking import Maskable, MaskedBatch, global_batches, mask, piece_batch
from edp_mx.data.text import Text
from edp_mx.data.text_survey import Survey, survey
from edp_mx.data.tokenizer import Tokenizer
from edp_mx.dp.sampling.shuffle import micro_batch_size
from edp_mx.errors import UserError
from edp_mx.runs.prepare import short_hash
from edp_mx.runs.pretraining.config import PretrainingConfig
from edp_mx.runtime.distributed import Workers
from edp_mx.runtime.progress import Heartbeat, no_heartbeat

logger = logging.getLogger(__name__)

# Uses of one seed that must not share random numbers.
_TRAINING, _HELD_OUT = 0x3A, 0x3B


@dataclass(frozen=True, eq=False)
class PretrainingText:
    """This worker's part of each global batch, and of the held-out text.

    The `counts` are of lines, and of each piece, over all workers.
    """

    config: PretrainingConfig
    text: Text
    counts: Survey
    tokenizer: Tokenizer
    workers: Workers

    @property
    def steps_per_epoch(self) -> int:
        """The same on all workers; lines that fill no batch are left out, others each epoch."""
        return self.counts.total_lines // self.config.pretraining.batch_size

    def training(self, epoch: int, first_step: int = 0) -> Iterator[MaskedBatch]:
        """Yield this worker's batches of an epoch, from a step on.

        Guarantee: a function of the text, the settings, the epoch, the step and the worker alone.
        """
        settings = self.config.pretraining
        batches = global_batches(
            self.text.mixed_lines(self.counts.lines),
            batch_size=settings.batch_size,
            buffer_size=self.config.text.buffer_size,
            seed=settings.seed,
            epoch=epoch,
        )
        for step, batch in enumerate(islice(batches, first_step, None), start=first_step):
            mine = batch[self.workers.rank :: self.workers.size]  # of similar length on all
            yield self._masked(mine, (_TRAINING, epoch, step, self.workers.rank))

    def held_out(self) -> List[MaskedBatch]:
        """Return this worker's share of the held-out lines.

        Guarantee: the masks are the same at each call and for any number of workers.
        """
        lines = sorted(self.text.held_out, key=len)
        size = self.config.pretraining.evaluation_batch_size
        mine = range(self.workers.rank, -(-len(lines) // size), self.workers.size)
        return [self._masked(lines[size * i : size * (i + 1)], (_HELD_OUT, i)) for i in mine]

    def unigram_loss(self, batches: Sequence[MaskedBatch]) -> float:
        """Return Σ −ln p over the masked places; p of a piece is its share of the training text.

        One is added to the count of each piece that can be masked.
        """
        counts = np.where(self._maskable.is_special, 0, self.counts.pieces + 1)  # (V,)
        losses = np.log(counts.sum()) - np.log(np.maximum(counts, 1))  # (V,)
        return float(sum(batch.counts @ losses[batch.targets] for batch in batches))

    @cached_property
    def _maskable(self) -> Maskable:
        ids = self.tokenizer.special_ids
        return Maskable(num_pieces=len(self.tokenizer), mask_id=ids.mask, special_ids=ids)

    def _masked(self, lines: Sequence[str], place: Tuple[int, ...]) -> MaskedBatch:
        """The lines as pieces, masked by the seed and a place."""
        settings, ids = self.config.pretraining, self.tokenizer.special_ids
        batch = piece_batch(
            lines,
            self.tokenizer.text_ids,
            cls_id=ids.cls,
            sep_id=ids.sep,
            pad_id=ids.pad,
            max_pieces=settings.max_pieces,
        )
        generator = np.random.default_rng([settings.seed, *place])
        return mask(batch, self._maskable, fraction=settings.mask_fraction, generator=generator)


def read_text(
    config: PretrainingConfig,
    tokenizer: Tokenizer,
    workers: Workers,
    heartbeat: Heartbeat = no_heartbeat,
) -> PretrainingText:
    """Read the text for the first time, on all workers together, which must read the same."""
    batch_size = config.pretraining.batch_size
    micro_batch_size(batch_size, workers.size, "pretraining.batch_size")
    heartbeat("reading the text")
    text, counts = survey(
        Text.open(config.text),
        tokenizer.text_ids,
        num_pieces=len(tokenizer),
        max_pieces=config.pretraining.max_pieces,
        max_held_out=config.text.max_held_out,
        rank=workers.rank,
        num_workers=workers.size,
        heartbeat=heartbeat,
    )
    workers.agree("the text", (counts.fingerprint, short_hash(text.held_out)))
    counts = counts.merge(workers.gather((counts.pieces, counts.cut)))
    logger.info(
        "%d lines (%d held out, %d cut to %d pieces), %d pieces of %d kinds",
        counts.total_lines,
        len(text.held_out),
        counts.cut,
        config.pretraining.max_pieces,
        counts.pieces.sum(),
        len(tokenizer),
    )
    if counts.total_lines < batch_size:
        raise UserError(
            f"pretraining.batch_size: {batch_size} is more than the {counts.total_lines} lines of "
            "text.train that are not held out; make it smaller, or give more text",
            is_shared=True,
        )
    return PretrainingText(config, text, counts, tokenizer, workers)
