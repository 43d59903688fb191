"""The training loop: draws, batches, private gradients, updates."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Callable, Iterator, List, Optional, Sequence

import mxnet as mx
import numpy as np

from edp_mx.data.encoding import EncodedCorpus
from edp_mx.data.prefetch import prefetch
from edp_mx.dp.privacy.mechanism import AnyMechanism
from edp_mx.dp.privacy.trainer import PrivateTrainer
from edp_mx.dp.sampling.draws import Draw, Sampler
from edp_mx.dp.unit_losses import UnitBatch, UnitLosses
from edp_mx.runtime.distributed import Workers
from edp_mx.runtime.progress import Heartbeat, Progress, no_heartbeat, no_progress
from edp_mx.tasks.model import TaskModel
from edp_mx.training.averaging import WeightAverage
from edp_mx.training.config import TrainingConfig
from edp_mx.training.step_groups import Ending, Pace


@dataclass(frozen=True)
class EpochSummary:
    """One finished epoch: `loss` is the mean over its steps and workers.

    Under Poisson sampling each step's loss is a sum over what was drawn, divided by the expected
    number; it scatters with the size of the draw.

    Attributes:
        seconds: by the clock, on this worker.
        processor_seconds: of all workers together, which other programs on their machines change
            little; NaN if the epoch was interrupted.
    """

    epoch: int
    steps: int
    loss: float
    seconds: float
    processor_seconds: float


@dataclass(frozen=True)
class EpochSoFar:
    """The place in a training: the next epoch, and the part of it that was done.

    Attributes:
        epoch: from 0; all before it are finished.
        steps: how many of its steps are taken.
        loss: the sum of their losses on this worker, a float32.
        seconds: that they took by the clock.
        processor_seconds: of this worker; NaN if another process took some of them.
    """

    epoch: int = 0
    steps: int = 0
    loss: float = 0.0
    seconds: float = 0.0
    processor_seconds: float = 0.0


Save = Callable[[EpochSoFar], None]


@dataclass(frozen=True, eq=False)
class TrainingLoop:
    """A model and everything that trains it.

    Attributes:
        sampler: this worker's records, and which of them are in which step and unit.
        trainer: aggregates the releases, and updates; its learning rate is the
            highest of the schedule.
        permit: `permit(epoch, first, most)` returns how many of at most so many steps may be taken
            from step `first` on, the same on all workers. It is asked before the first of them, so
            that they can be written down before they are released.
        average: of the weights, to which each step adds its own; None if none is kept.
    """

    model: TaskModel
    corpus: EncodedCorpus
    sampler: Sampler
    mechanism: AnyMechanism
    trainer: PrivateTrainer
    config: TrainingConfig
    workers: Workers
    permit: Callable[[int, int, int], int]
    heartbeat: Heartbeat = no_heartbeat
    average: Optional[WeightAverage] = None
    is_asked: Callable[[], bool] = lambda: False

    def epochs(
        self,
        progress: Progress = no_progress,
        *,
        begin: EpochSoFar = EpochSoFar(),
        save: Optional[Save] = None,
    ) -> Iterator[EpochSummary]:
        """Train from `begin` on, and yield after each epoch, when all workers are in step.

        A worker for which nothing is drawn (Poisson sampling) sends zero and its noise; such a step
        counts like any. Training ends with an epoch of which not every step is permitted.

        Args:
            save: called within an epoch on all workers, when `config.checkpoints` says so, or
                before it ends because a worker was asked to.

        Raises:
            KeyboardInterrupt: a worker was asked to end; on all of them, after the same step.
        """
        losses = UnitLosses(
            self.model.loss,
            self.corpus.batch,
            lengths=self.corpus.sizes,
            sampler=self.sampler,
            mechanism=self.mechanism,
            factor=self.config.loss_factor,
            seed=self.config.seed,
            rank=self.workers.rank,
        )
        take = partial(self._step, losses, self.trainer.learning_rate)
        pace, last = Pace(self.config.checkpoints), self.sampler.steps_per_epoch
        while begin.epoch < self.config.epochs:
            so_far = self._epoch(begin, losses.batches, take, pace, progress, save)
            if so_far.steps == 0:
                return
            mine = np.array([so_far.loss / so_far.steps, so_far.processor_seconds])
            loss, busy = map(float, self.workers.mean(mine))
            yield EpochSummary(
                so_far.epoch, so_far.steps, loss, so_far.seconds, busy * self.workers.size
            )
            if so_far.steps < last:
                return
            pace.saved()  # who asks for epochs writes a checkpoint after each
            begin = EpochSoFar(so_far.epoch + 1)

    def _epoch(
        self,
        begin: EpochSoFar,
        batches_of: Callable[[Draw], List[UnitBatch]],
        take: Callable[[List[UnitBatch], int, int], mx.nd.NDArray],
        pace: Pace,
        progress: Progress,
        save: Optional[Save],
    ) -> EpochSoFar:
        """Take the rest of an epoch, as far as it is permitted."""
        epoch, step, all_steps = begin.epoch, begin.steps, self.sampler.steps_per_epoch
        of = f"epoch {epoch + 1} of {self.config.epochs}"
        self.workers.agree(f"the steps of {of}", (step, all_steps))
        total = mx.nd.full((1,), begin.loss, ctx=self.trainer.context)
        started, so_far = time.perf_counter() - begin.seconds, begin
        busy_before = time.process_time() - begin.processor_seconds
        ending, ends = Ending(self.workers, self.is_asked), False
        made = prefetch(batches_of, islice(self.sampler.draws(epoch), step, None))
        bar = progress(made, f"epoch {epoch + 1}/{self.config.epochs}", all_steps - step)
        told: Any = iter(bar)  # a generator, with or without a bar
        with closing(made), closing(told):
            while step < all_steps:
                wanted = self.workers.broadcast(pace.stretch(step, all_steps - step))
                count = self.permit(epoch, step, wanted)
                self.workers.agree(f"what is permitted of {of}", count)
                for batches in islice(told, count):
                    self.heartbeat(f"{of}, step {step + 1} of {all_steps}")
                    total += take(batches, epoch, step)
                    step += 1
                    ends = ending.is_due()
                    if ends:
                        break
                mx.nd.waitall()  # a failed all-reduce that nobody waits for would be lost
                seconds = time.perf_counter() - started
                busy = time.process_time() - busy_before
                so_far = EpochSoFar(epoch, step, float(total.asscalar()), seconds, busy)
                if ends:
                    if save is not None:
                        save(so_far)
                    raise KeyboardInterrupt
                if count < wanted:
                    break
                is_due = self.workers.broadcast(pace.is_due(step))
                if is_due and save is not None and step < all_steps:
                    save(so_far)
                    pace.saved()
            if step == all_steps:
                next(told, None)  # the bar sees that the last step is over
        return so_far

    def _step(
        self, losses: UnitLosses, rate: float, batches: Sequence[UnitBatch], epoch: int, step: int
    ) -> mx.nd.NDArray:
        """Take one step, at most at this learning rate; return the loss on this worker, (1,)."""
        all_steps = self.sampler.steps_per_epoch
        place, length = epoch * all_steps + step, self.config.epochs * all_steps
        self.trainer.set_learning_rate(rate * self.config.schedule.factor(place, length))
        released = self.mechanism.privatise(losses(batches, epoch=epoch, step=step), epoch=epoch)
        self.trainer.step_private(released)
        if self.average is not None:
            self.average.add(place)
        return released.loss
