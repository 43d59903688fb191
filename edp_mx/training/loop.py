"""Epoch after epoch: draws, batches, private gradient, step."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import islice
from typing import Callable, Iterable, Iterator, List

import mxnet as mx

from edp_mx.data.draws import Sampler
from edp_mx.data.encoding import EncodedCorpus
from edp_mx.data.prefetch import prefetch
from edp_mx.models.intent_slot import IntentSlotModel
from edp_mx.privacy.mechanism import AnyMechanism
from edp_mx.privacy.trainer import PrivateTrainer
from edp_mx.runtime.distributed import Workers
from edp_mx.training.gradient import UnitLosses
from edp_mx.training.gradient import seed_dropout as seed_dropout
from edp_mx.training.schedule import Schedule
from edp_mx.training.units import UnitBatch

Wrap = Callable[[Iterable[List[UnitBatch]], int, int], Iterable[List[UnitBatch]]]


@dataclass(frozen=True)
class EpochSummary:
    """One finished epoch: `loss` is the mean over its steps and workers.

    Under Poisson sampling each step's loss is a sum over what was drawn, divided by what was
    expected; it scatters with the size that was drawn.
    """

    epoch: int
    steps: int
    loss: float
    seconds: float


def epochs(
    model: IntentSlotModel,
    mechanism: AnyMechanism,
    trainer: PrivateTrainer,
    corpus: EncodedCorpus,
    sampler: Sampler,
    *,
    num_epochs: int,
    first_epoch: int = 0,
    schedule: Schedule,
    seed: int,
    workers: Workers,
    permit: Callable[[int, int], int] = lambda _, steps: steps,
    heartbeat: Callable[[str], None],
    wrap: Wrap,
) -> Iterator[EpochSummary]:
    """Trains, and yields after each epoch, when all workers are in step.

    Args:
        mechanism: makes the gradient of each step private (or leaves it as it is).
        trainer: aggregates what the mechanism releases, and updates.
        corpus: the training part.
        sampler: this worker's records, and which of them are in which step and unit.
        first_epoch: where a resumed run goes on.
        schedule: of the learning rate; the trainer's own is the highest.
        seed: of the dropout masks.
        permit: (epoch, its steps) → how many of them may be taken, the same on all workers. It is
            asked before the first of them, so that they can be written down before they are
            released; training ends with an epoch that may not be taken whole.
        heartbeat: told of each step ("epoch 2, step 17"): the watchdog listens.
        wrap: put around an epoch's steps (with the epoch and the number of steps), e.g. a
            progress bar.

    Raises:
        UserError: the workers disagree on the number of steps.

    Edge cases: a worker for which nothing is drawn (Poisson sampling) sends zero and its noise, and
    the step counts like any.
    """
    learning_rate = trainer.learning_rate
    losses = UnitLosses(
        model, corpus, sampler=sampler, mechanism=mechanism, seed=seed, rank=workers.rank
    )
    total_steps = num_epochs * sampler.steps_per_epoch
    for epoch in range(first_epoch, num_epochs):
        started = time.perf_counter()
        steps = permit(epoch, sampler.steps_per_epoch)
        workers.agree(f"the steps of epoch {epoch}", (sampler.steps_per_epoch, steps))
        if steps == 0:
            return
        total = mx.nd.zeros((1,), ctx=trainer.context)
        made = prefetch(losses.batches, islice(sampler.draws(epoch), steps))
        for step, batches in enumerate(wrap(made, epoch, steps)):
            heartbeat(f"epoch {epoch}, step {step}")
            factor = schedule.factor(epoch * sampler.steps_per_epoch + step, total_steps)
            trainer.set_learning_rate(learning_rate * factor)
            released = mechanism.privatise(losses(batches, epoch=epoch, step=step), epoch=epoch)
            trainer.step_private(released)
            total += released.loss
        mx.nd.waitall()  # a failed all-reduce that nobody waits for would be lost
        mean = float(workers.mean(total.asnumpy() / steps)[0])
        yield EpochSummary(epoch, steps, mean, time.perf_counter() - started)
        if steps < sampler.steps_per_epoch:
            return
