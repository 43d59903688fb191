"""One training run, from a configuration to a run directory."""

from __future__ import annotations

import logging
import time
from contextlib import closing, nullcontext
from dataclasses import replace
from typing import Any, Dict, Mapping

import mxnet as mx
import numpy as np

from edp_mx.config import ExperimentConfig
from edp_mx.data.fingerprint import fingerprint
from edp_mx.data.origin import ORIGIN, write_origin
from edp_mx.data.splits import PARTS
from edp_mx.dp.privacy.clipping import ClippingStatistics
from edp_mx.dp.weights import save_weights
from edp_mx.errors import UserError
from edp_mx.runs.ancestors import origin_of_run
from edp_mx.runs.build_training import Training, build_training
from edp_mx.runs.epoch_report import EpochLines, EpsilonSoFar
from edp_mx.runs.epoch_sums import begin_of, clipping_of, sums_of
from edp_mx.runs.exported.huggingface import write_huggingface
from edp_mx.runs.interrupted import resumes_with
from edp_mx.runs.ledger_evidence import END
from edp_mx.runs.prepare import prepare, short_hash
from edp_mx.runs.record import make_record
from edp_mx.runs.run_directory import MODEL, RunDirectory
from edp_mx.runs.start_of_run import has_started, refuse_lost, refuse_other_start, write_start
from edp_mx.runs.trained_run import TrainedRun
from edp_mx.runtime.blas_in_use import warn_of_slow_kernels
from edp_mx.runtime.distributed import Workers
from edp_mx.runtime.npz import Arrays
from edp_mx.runtime.progress import Progress
from edp_mx.runtime.watchdog import Parting, Watchdog
from edp_mx.tasks.registry import TASKS
from edp_mx.tasks.task import Scores
from edp_mx.training.evaluate import score_corpus
from edp_mx.training.log import MetricsLog
from edp_mx.training.loop import EpochSoFar, EpochSummary
from edp_mx.training.selection import Selection
from edp_mx.training.state import TrainingState

logger = logging.getLogger(__name__)


def train(
    config: ExperimentConfig,
    workers: Workers,
    run: RunDirectory,
    progress: Progress,
    parting: Parting = tuple,
) -> Scores:
    """Train one configuration and fill its run directory, or resume a run that was interrupted.

    Args:
        workers: this worker among all; each calls this with the same arguments.
        run: a folder that exists; only rank 0 writes to it. Where it holds a checkpoint, the run
            goes on from there, with fresh noise.

    Returns:
        The scores on the test part.

    Raises:
        UserError: bad settings or data, or workers that disagree.
    """
    workers.agree("the configuration", short_hash(config))
    seconds = config.training.watchdog_seconds
    watch = Watchdog.over(workers, folder=run.workers, seconds=seconds, parting=parting)
    with watch as watchdog:
        prepared = prepare(config, workers, watchdog.heartbeat, progress)
        training = build_training(prepared, config, workers, run, watchdog.heartbeat, progress)
        training = replace(training, loop=replace(training.loop, is_asked=watchdog.is_asked))
        return _Run(config, run, training, progress).run()


class _Run:
    """The steps of `train` once everything is built, in the order in which they are called."""

    def __init__(
        self,
        config: ExperimentConfig,
        directory: RunDirectory,
        training: Training,
        progress: Progress,
    ) -> None:
        self.config, self.directory, self.training = config, directory, training
        self.loop, self.spending, self.progress = training.loop, training.spending, progress
        self.workers, self.model = self.loop.workers, training.model
        self.average, self.task = training.loop.average, TASKS[config.task]
        self.selection = Selection(self.model, config.training)
        self.num_epochs = config.training.epochs
        self.begin, self.seconds = EpochSoFar(), 0.0  # the part before an interruption

    def run(self) -> Scores:
        self._resume()
        self._describe()
        self._train()
        if self.average is not None:
            self.average.apply()
        self.selection.restore()
        self.workers.on_first(lambda: save_weights(self.model, self.directory.weights))
        self._write_privacy()
        scores, prepared = self._score("test"), self.training.prepared
        if self.workers.is_first:
            results = {
                "test": scores.to_dict(),
                "baseline": self.task.constant_answer(prepared.corpus.test, prepared.vocabulary),
                "training_seconds": self.seconds,
            }
            refuse_lost(self.directory)
            if self.task.is_start and self.config.model.trained_part.is_merged:
                own = TrainedRun(self.directory, self.config, prepared.vocabulary, self.model)
                write_huggingface(own, own.run.path / MODEL)
            self.directory.write("record", make_record(self.directory, self.config, results))
            self.directory.finish(results)
        return scores

    def _resume(self) -> None:
        """Restore the state of an interrupted run."""
        path = self.directory.checkpoint
        state = TrainingState.resume(path, self.workers)
        if state:
            state.restore(self.model, self.loop.trainer, path)
            self.selection.resume(state.best_cost, state.best_epoch, state.best)
            if self.average is not None:
                self.average.resume(state.average)
            self.seconds = state.seconds
            self.begin = begin_of(state, self.workers)
            if state.steps:
                statistics = state.so_far["clipping"][self.workers.rank]
                self.loop.mechanism.clipping.statistics = ClippingStatistics.of(statistics)
            if self.workers.is_first:
                logger.info("resuming the run: %s", resumes_with(self.directory))

    def _describe(self) -> None:
        """Log and write down the inputs of the run, before it begins."""
        corpus, layers = self.training.prepared.corpus, self.training.flat.layers
        logger.info(
            "%s: %d training, %d validation, %d test utterances; %d steps per epoch; "
            "%d parameters in %d layers",
            corpus.name,
            *(len(getattr(corpus, part)) for part in PARTS),
            self.loop.sampler.steps_per_epoch,
            sum(layer.size for layer in layers),
            len(layers),
        )
        warn_of_slow_kernels()
        self.workers.on_first(self._write_start)

    def _write_start(self) -> None:
        """Write the run's own files on rank 0; one that is resumed must have been begun so."""
        prepared, layers = self.training.prepared, self.training.flat.layers
        corpus, run = prepared.corpus, self.directory
        logger.info("%s", self.spending.planned(self.begin.epoch, self.begin.steps).describe())
        start: Dict[str, Any] = {
            "fingerprints": {part: fingerprint(getattr(corpus, part)) for part in PARTS},
            "vocabulary": prepared.vocabulary.to_json(),
            "frozen": TrainingState.hash_of_others(self.model, self.loop.trainer),
        }
        if has_started(run):
            refuse_other_start(run, **start)
            refuse_lost(run)
            return
        write_origin(run.path / ORIGIN, origin_of_run(run, self.config, corpus))
        corpus.split.write(run.path / "split.json", corpus.utterances)
        scales = getattr(self.spending.plan.release, "layer_scales", None)
        described = zip(layers, scales or [None] * len(layers))
        run.write("layers", [{**each.describe(), "scale": scale} for each, scale in described])
        write_start(run, num_workers=self.workers.size, **start)  # the start is whole

    def _train(self) -> None:
        """Train until the plan, the budget or the patience is at its end."""
        if self.begin.steps == 0 and self.selection.has_stopped(self.begin.epoch - 1):
            return  # before the interruption
        log = None
        if self.workers.is_first:
            start, tracking = self.begin.epoch + 1, self.config.training.tracking
            log = MetricsLog(self.directory.metrics, start=start, tracking=tracking)
        so_far, ended = EpsilonSoFar(self.spending), time.perf_counter()
        lines = EpochLines(self.num_epochs, self.task, done=self.begin.epoch)
        with closing(log) if log else nullcontext():
            for epoch in self.loop.epochs(self.progress, begin=self.begin, save=self._checkpoint):
                self.seconds += epoch.seconds
                self._refuse_diverged(epoch.epoch)
                with self.average.applied() if self.average else nullcontext():
                    scores = self._score("validation").to_dict()
                    stops = self.selection.stops_after(epoch.epoch, self.task.cost(scores))
                row = self._row(epoch, scores)
                if log:
                    is_cut = epoch.steps < self.loop.sampler.steps_per_epoch
                    is_last = stops or is_cut or row["epoch"] == self.num_epochs
                    row.update(so_far.after(epoch, is_last=is_last))
                    row["clock_seconds"] = time.perf_counter() - ended
                    ended += row["clock_seconds"]
                    log.add(row)
                    lines.tell(row, is_last=is_last)
                self._checkpoint(EpochSoFar(epoch.epoch + 1))
                if stops:
                    break

    def _refuse_diverged(self, epoch: int) -> None:
        """Refuse weights that are no longer finite; they are the same on all workers."""
        for name, parameter in TrainingState.kept(self.model, self.loop.trainer).items():
            if not np.isfinite(parameter.data().sum().asscalar()):
                self.spending.stop()
                self._write_privacy()  # which says how the ledger ended
                counts = "; ε counts all that was planned" if self.spending.plan.release else ""
                raise UserError(
                    f"the training diverged in epoch {epoch + 1}: {name} is no longer finite; use "
                    f"a smaller training.learning_rate{counts}"
                )

    def _write_privacy(self) -> None:
        if self.workers.is_first:
            spent = self.spending.spent().to_dict()
            self.directory.write("privacy", {**spent, END: self.spending.end()})

    def _checkpoint(self, so_far: EpochSoFar) -> None:
        """Write a checkpoint, from which `--resume` goes on."""
        mx.nd.waitall()  # a failed all-reduce that nobody waits for would be lost
        sums = sums_of(self.loop, so_far) if so_far.steps else {}
        self.workers.on_first(lambda: self._write_checkpoint(so_far, sums))

    def _write_checkpoint(self, so_far: EpochSoFar, sums: Arrays) -> None:
        """Write it on rank 0; a failure ends the run on all workers."""
        best_cost, best_epoch, best = self.selection.standing
        mark = self.spending.mark()
        TrainingState.of(
            self.model,
            self.loop.trainer,
            seconds=self.seconds,
            epochs=so_far.epoch,
            steps=so_far.steps,
            epoch_seconds=so_far.seconds,
            so_far=sums,
            best_cost=best_cost,
            best_epoch=best_epoch,
            best=best,
            average=self.average.values if self.average else {},
            ledger_size=mark.size if mark else 0,
            ledger_digest=mark.digest if mark else "",
        ).write(self.directory.checkpoint)
        refuse_lost(self.directory)  # after the checkpoint, so that no step is repeated

    def _row(self, epoch: EpochSummary, scores: Mapping[str, Any]) -> Dict[str, Any]:
        row: Dict[str, Any] = {
            "epoch": epoch.epoch + 1,
            "loss": epoch.loss,
            "seconds": epoch.seconds,
            "processor_seconds": epoch.processor_seconds,
            **self.task.for_people(scores),
        }
        plan = self.spending.plan
        if plan.release is not None:
            row["noise_multiplier"] = plan.noise_multiplier_at(epoch.epoch)
            row.update(clipping_of(self.loop, plan.release.unit))
        return row

    def _score(self, part: str) -> Scores:
        """The scores on the validation or test part, on every worker."""
        prepared = self.training.prepared
        scores = score_corpus(
            self.task,
            self.loop.model,
            getattr(prepared, part),
            getattr(prepared.corpus, part),
            prepared.vocabulary,
            batch_size=self.config.training.evaluation_batch_size,
            workers=self.workers,
            progress=self.progress,
            what=f"scoring {part}",
            heartbeat=self.loop.heartbeat,
        )
        mx.nd.waitall()
        return scores
