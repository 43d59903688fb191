"""The training loop: draws, batches, private gradients, updates."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import islice
from typing import Callable, Iterator, Optional

import mxnet as mx

from edp_mx.data.draws import Sampler
from edp_mx.data.encoding import EncodedCorpus
from edp_mx.data.prefetch import prefetch
from edp_mx.models.intent_slot import IntentSlotModel
from edp_mx.privacy.mechanism import AnyMechanism
from edp_mx.privacy.trainer import PrivateTrainer
from edp_mx.runtime.distributed import Workers
from edp_mx.runtime.progress import Heartbeat, Progress, no_heartbeat, no_progress
from edp_mx.training.averaging import WeightAverage
from edp_mx.training.config import TrainingConfig
from edp_mx.training.gradient import UnitLosses


@dataclass(frozen=True)
class EpochSummary:
    """One finished epoch: `loss` is the mean over its steps and workers.

    Under Poisson sampling each step's loss is a sum over what was drawn, divided by the expected
    number; it scatters with the size of the draw.
    """

    epoch: int
    steps: int
    loss: float
    seconds: float


@dataclass(frozen=True, eq=False)
class TrainingLoop:
    """A model and everything that trains it.

    Attributes:
        corpus: the training part.
        sampler: this worker's records, and which of them are in which step and unit.
        trainer: aggregates what the mechanism releases, and updates; its learning rate is the
            highest of the schedule.
        permit: number of steps of an epoch that may be taken, the same on all workers. It is asked
            before the first of them, so that they can be written down before they are released.
        heartbeat: called at each step.
        average: of the weights, to which each step adds its own; None if none is kept.
    """

    model: IntentSlotModel
    corpus: EncodedCorpus
    sampler: Sampler
    mechanism: AnyMechanism
    trainer: PrivateTrainer
    config: TrainingConfig
    workers: Workers
    permit: Callable[[int], int]
    heartbeat: Heartbeat = no_heartbeat
    average: Optional[WeightAverage] = None

    def epochs(
        self, progress: Progress = no_progress, *, first_epoch: int = 0
    ) -> Iterator[EpochSummary]:
        """Train from `first_epoch` on, and yield after each epoch, when all workers are in step.

        A worker for which nothing is drawn (Poisson sampling) sends zero and its noise; such a step
        counts like any. Training ends with an epoch of which not every step is permitted.
        """
        rate, num_epochs = self.trainer.learning_rate, self.config.epochs
        all_steps = self.sampler.steps_per_epoch
        losses = UnitLosses(
            self.model,
            self.corpus,
            sampler=self.sampler,
            mechanism=self.mechanism,
            seed=self.config.seed,
            rank=self.workers.rank,
        )
        for epoch in range(first_epoch, num_epochs):
            started = time.perf_counter()
            steps = self.permit(epoch)
            self.workers.agree(f"the steps of epoch {epoch + 1}", (all_steps, steps))
            if steps == 0:
                return
            total = mx.nd.zeros((1,), ctx=self.trainer.context)
            made = prefetch(losses.batches, islice(self.sampler.draws(epoch), steps))
            told = progress(made, f"epoch {epoch + 1}/{num_epochs}", steps)
            for step, batches in enumerate(told):
                self.heartbeat(f"epoch {epoch + 1} of {num_epochs}, step {step + 1} of {steps}")
                place, length = epoch * all_steps + step, num_epochs * all_steps
                self.trainer.set_learning_rate(rate * self.config.schedule.factor(place, length))
                chunks = losses(batches, epoch=epoch, step=step)
                released = self.mechanism.privatise(chunks, epoch=epoch)
                self.trainer.step_private(released)
                if self.average is not None:
                    self.average.add(place)
                total += released.loss
            mx.nd.waitall()  # a failed all-reduce that nobody waits for would be lost
            mean = float(self.workers.mean(total.asnumpy() / steps)[0])
            yield EpochSummary(epoch, steps, mean, time.perf_counter() - started)
            if steps < all_steps:
                return
