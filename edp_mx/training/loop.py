"""Epoch after epoch: batches, loss, backward, private step."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from typing import Callable, Iterable, Iterator

import mxnet as mx
import numpy as np
from mxnet import autograd

from edp_mx.data.encoding import EncodedCorpus
from edp_mx.data.sampling import Shard
from edp_mx.distributed import Workers
from edp_mx.models.intent_slot import IntentSlotModel
from edp_mx.privacy.trainer import PrivateTrainer
from edp_mx.training.schedule import Schedule

Wrap = Callable[[Iterable[np.ndarray], int, int], Iterable[np.ndarray]]


@dataclass(frozen=True)
class EpochSummary:
    """One finished epoch: `loss` is the mean over its steps and workers."""

    epoch: int
    steps: int
    loss: float
    seconds: float


def epochs(
    model: IntentSlotModel,
    trainer: PrivateTrainer,
    corpus: EncodedCorpus,
    shard: Shard,
    *,
    num_epochs: int,
    schedule: Schedule,
    seed: int,
    workers: Workers,
    on_step: Callable[[str], None],
    wrap: Wrap,
) -> Iterator[EpochSummary]:
    """Trains, and yields after each epoch, when all workers are in step.

    Args:
        corpus: the training part.
        shard: this worker's records; every record at most once an epoch.
        schedule: of the learning rate; the trainer's own is the highest.
        seed: of the dropout masks.
        on_step: told of each step ("epoch 2, step 17"): the watchdog listens.
        wrap: put around an epoch's micro-batches (with the epoch and the number of steps), e.g. a
            progress bar.

    Raises:
        UserError: the workers disagree on the number of steps.
    """
    learning_rate = trainer.learning_rate
    total_steps = num_epochs * shard.steps_per_epoch
    for epoch in range(num_epochs):
        started = time.perf_counter()
        workers.agree(f"the steps of epoch {epoch}", shard.steps_per_epoch)
        total = mx.nd.zeros((1,), ctx=trainer.context)
        for step, indices in enumerate(
            wrap(shard.micro_batches(epoch), epoch, shard.steps_per_epoch)
        ):
            on_step(f"epoch {epoch}, step {step}")
            seed_dropout(seed, workers.rank, epoch, step)
            factor = schedule.factor(epoch * shard.steps_per_epoch + step, total_steps)
            trainer.set_learning_rate(learning_rate * factor)
            batch = corpus.batch(indices)
            with autograd.record():
                loss = model.loss(batch).sum() / len(indices)  # mean over the micro-batch
            loss.backward()
            trainer.step_private(epoch=epoch)
            total += loss.detach()
        mx.nd.waitall()  # a failed all-reduce that nobody waits for would be lost
        mean = float(workers.mean(total.asnumpy() / shard.steps_per_epoch)[0])
        yield EpochSummary(epoch, shard.steps_per_epoch, mean, time.perf_counter() - started)


def seed_dropout(*place: int) -> None:
    """Makes the dropout masks of a step a function of its place (seed, rank, epoch, step) alone.

    MXNet's generator moves on by the size of what it fills. Left to itself it would carry the
    length of one utterance into the masks of all later steps of its worker, around the clipping,
    and a record would no longer count once an epoch. A hash, because MXNet's streams for seeds
    that lie close together overlap.
    """
    digest = hashlib.sha256(repr(place).encode()).digest()
    mx.random.seed(int.from_bytes(digest[:4], "big") >> 1)
