"""One pre-training run: a BERT learns to guess masked pieces of public text."""

from __future__ import annotations

import logging
import time
from dataclasses import asdict
from typing import Any, Callable, Dict, Optional

import gluonnlp  # noqa: F401 (registers the optimizer BERTAdam)
import mxnet as mx
import numpy as np
from mxnet import autograd

from edp_mx.data.masking import MaskedBatch
from edp_mx.data.origin import ORIGIN, write_origin
from edp_mx.data.tokenizer import tokenizer_from_json
from edp_mx.dp.privacy.flat import FlatGradients
from edp_mx.dp.privacy.layers import layers_of
from edp_mx.dp.privacy.trainer import PublicTrainer
from edp_mx.dp.unit_losses import seed_dropout
from edp_mx.dp.weights import broadcast_weights
from edp_mx.errors import UserError
from edp_mx.runs.ancestors import origin_of_pretraining
from edp_mx.runs.prepare import short_hash
from edp_mx.runs.pretraining.config import PretrainingConfig
from edp_mx.runs.pretraining.directory import MODEL, PretrainingState
from edp_mx.runs.pretraining.model import (
    build_model,
    load_checkpoint,
    settle_vocabulary,
    write_model,
)
from edp_mx.runs.pretraining.scores import MaskedScores, Window, score
from edp_mx.runs.pretraining.text import PretrainingText, read_text
from edp_mx.runs.run_directory import RunDirectory, environment
from edp_mx.runtime.blas_in_use import warn_of_slow_kernels
from edp_mx.runtime.distributed import Workers, device
from edp_mx.runtime.progress import Heartbeat, Progress
from edp_mx.runtime.watchdog import Parting, Watchdog, no_parting
from edp_mx.training.config import Schedule
from edp_mx.training.ending import Ending
from edp_mx.training.log import MetricsLog

logger = logging.getLogger(__name__)


def pretrain(
    config: PretrainingConfig,
    workers: Workers,
    run: RunDirectory,
    progress: Progress,
    parting: Parting = no_parting,
) -> Dict[str, Any]:
    """Pre-train a BERT and fill its run directory, or resume a run that was interrupted.

    Args:
        workers: this worker among all; each calls this with the same arguments.
        run: a folder that exists; if rank 0's holds a checkpoint, the run is resumed from it.
        parting: what a worker says if the job is ended.

    Returns:
        What `results.json` holds.

    Raises:
        UserError: bad settings or text, or workers that disagree.

    Guarantee: a run that was interrupted at any moment and is resumed with as many workers ends
        with the same losses and weights as one that was not.
    """
    workers.agree("the configuration", short_hash(config))
    # Learning a vocabulary may take one worker longer than the watchdog waits.
    tokenizer = tokenizer_from_json(workers.on_first(lambda: _vocabulary(config, run)))
    seconds = config.pretraining.watchdog_seconds
    watch = Watchdog.over(workers, folder=run.workers, seconds=seconds, parting=parting)
    with watch as watchdog:
        text = read_text(config, tokenizer, workers, watchdog.heartbeat)
        return _Run(text, run, progress, watchdog.heartbeat, watchdog.is_asked).run()


def _vocabulary(config: PretrainingConfig, run: RunDirectory) -> Dict[str, Any]:
    tokenizer = settle_vocabulary(config, run.path)
    return {**tokenizer.to_json(), "lowercase": tokenizer.lowercase}


class _Run:
    """The steps of `pretrain` once the text is read, in the order in which they are called."""

    def __init__(
        self,
        text: PretrainingText,
        directory: RunDirectory,
        progress: Progress,
        heartbeat: Heartbeat,
        is_asked: Callable[[], bool],
    ) -> None:
        self.text, self.directory, self.workers = text, directory, text.workers
        self.config, self.settings = text.config, text.config.pretraining
        self.progress, self.heartbeat = progress, heartbeat
        self.ending = Ending(text.workers, is_asked)
        self.total_steps = self.settings.epochs * text.steps_per_epoch
        self.held_out = text.held_out()
        self.unigram_loss = text.unigram_loss(self.held_out)
        self.scores: Optional[MaskedScores] = None
        self.step, self.seconds = 0, 0.0  # done before and since the run was interrupted

    def run(self) -> Dict[str, Any]:
        self._build()
        self.log: Optional[MetricsLog] = None
        if self.workers.is_first:
            self.log = MetricsLog(self.directory.metrics, counter="step", start=self.step + 1)
        self._describe()
        self.started = time.perf_counter() - self.seconds
        for epoch in range(self.step // self.text.steps_per_epoch, self.settings.epochs):
            self._epoch(epoch)
        return self._finish()

    def _build(self) -> None:
        """Build model and trainer, the same on all workers, where the run stood last."""
        path = self.directory.checkpoint
        state = PretrainingState.resume(path, self.workers)
        context, num_pieces = device(self.workers), len(self.text.tokenizer)
        self.model = build_model(self.config, num_pieces=num_pieces, context=context)
        if self.config.model.checkpoint is not None and not state:
            self.workers.on_first(lambda: load_checkpoint(self.model, self.config.model))
        broadcast_weights(self.model, self.workers)
        for name, parameter in self.model.collect_params().items():
            if name.endswith(("bias", "beta", "gamma")):
                parameter.wd_mult = 0.0
        self.schedule = Schedule("linear", self.settings.warmup_fraction)
        self.trainer = PublicTrainer(
            flat=FlatGradients(layers_of(self.model)),
            optimizer="bertadam",
            optimizer_params={"learning_rate": 0.0, "wd": self.settings.weight_decay},
            max_grad_norm=self.settings.max_grad_norm,
        )
        if state is None:
            return
        if state.fingerprint != self.text.counts.fingerprint:
            raise UserError(f"text.train: the lines have changed since {path} was written")
        if state.num_workers != self.workers.size:
            logger.warning(
                "%d workers resume a run of %d: the masks will be different",
                self.workers.size,
                state.num_workers,
            )
        state.restore(self.model, self.trainer, path)
        self.step, self.seconds = state.step, state.seconds

    def _describe(self) -> None:
        """Write down what the run is made with, once."""
        logger.info(
            "%s step %d of %d, %d steps per epoch",
            "resuming after" if self.step else "starting at",
            self.step,
            self.total_steps,
            self.text.steps_per_epoch,
        )
        warn_of_slow_kernels()
        if self.workers.is_first and not self.directory.has("environment"):
            self.directory.write("environment", environment(self.workers.size))

    def _epoch(self, epoch: int) -> None:
        """Train on the rest of an epoch."""
        per_epoch, window = self.text.steps_per_epoch, Window(self.trainer.context)
        first = self.step - epoch * per_epoch
        self.workers.agree(f"the steps of epoch {epoch + 1}", (first, per_epoch))
        bar = f"epoch {epoch + 1}/{self.settings.epochs}"
        for batch in self.progress(self.text.training(epoch, first), bar, per_epoch - first):
            self.heartbeat(
                f"epoch {epoch + 1} of {self.settings.epochs}, step {self.step + 1} of "
                f"{self.total_steps}"
            )
            window.add(self._train_step(epoch, batch), int(batch.lengths.sum()))
            self.step += 1
            is_last = self.step == (epoch + 1) * per_epoch
            scores = self._is_due("evaluate_every", is_last and not self.settings.evaluate_every)
            if self._is_due("log_every", is_last) or scores:
                self._record(epoch, window, scores=scores or self.step == self.total_steps)
                window = Window(self.trainer.context)
            ends = self.ending.is_due()
            if ends or self._is_due("checkpoint_every", is_last):
                self._checkpoint()
            if ends:
                raise KeyboardInterrupt

    def _is_due(self, key: str, is_last: bool) -> bool:
        every = getattr(self.settings, key)
        return is_last or (every > 0 and self.step % every == 0)

    def _train_step(self, epoch: int, batch: MaskedBatch) -> mx.nd.NDArray:
        """Make one update; return the mean over this worker's places, (1,)."""
        factor = self.schedule.factor(self.step, self.total_steps)
        self.trainer.set_learning_rate(self.settings.learning_rate * factor)
        seed_dropout(self.settings.seed, self.workers.rank, epoch, self.step)
        with autograd.record():
            loss = self.model.loss(batch)  # (1,)
        loss.backward()
        self.trainer.step(1)
        return loss.detach()

    def _record(self, epoch: int, window: Window, *, scores: bool) -> None:
        """Write a line of `metrics.jsonl`, with or without scores; refuse a loss that diverged."""
        loss, speed = self.workers.mean(window.means())
        if not np.isfinite(loss):
            raise UserError(
                f"the pre-training diverged before step {self.step}; use a smaller "
                "pretraining.learning_rate or a larger warmup_fraction"
            )
        row: Dict[str, Any] = {
            "step": self.step,
            "epoch": epoch + 1,
            "loss": float(loss),
            "learning_rate": self.trainer.learning_rate,
            "pieces_per_second": float(speed * self.workers.size),
        }
        if scores:
            row.update(asdict(self._score()))
        if self.log:
            self.log.add(row)

    def _score(self) -> MaskedScores:
        self.scores = score(
            self.model, self.held_out, self.unigram_loss, self.workers, self.heartbeat
        )
        logger.info("step %d/%d: %s", self.step, self.total_steps, self.scores.describe())
        return self.scores

    def _checkpoint(self) -> None:
        mx.nd.waitall()  # a failed all-reduce that nobody waits for would be lost
        if self.workers.is_first:
            PretrainingState.of(
                self.model,
                self.trainer,
                seconds=time.perf_counter() - self.started,
                step=self.step,
                fingerprint=self.text.counts.fingerprint,
                num_workers=self.workers.size,
            ).write(self.directory.checkpoint)

    def _finish(self) -> Dict[str, Any]:
        """Write the model in Hugging Face's layout, and the results."""
        counts = self.text.counts
        results = {
            **asdict(self.scores or self._score()),
            "steps": self.total_steps,
            "lines": counts.total_lines,
            "lines_cut": counts.cut,
            "pieces": int(counts.pieces.sum()),
            "held_out_lines": len(self.text.text.held_out),
            "text": counts.fingerprint,
            "seconds": time.perf_counter() - self.started,
        }
        if self.workers.is_first:
            folder = self.directory.path / MODEL
            line = origin_of_pretraining(self.directory, self.config, counts)
            write_origin(folder / ORIGIN, line)  # first: no model without its origin
            write_model(self.model, self.config.model, self.text.tokenizer, folder)
            self.directory.finish(results)
        return results
