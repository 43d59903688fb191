"""One training run, from a configuration to a run directory."""

from __future__ import annotations

import logging
from typing import Any, Callable, Dict, Iterable, Optional

import mxnet as mx
import numpy as np

from edp_mx.config import ExperimentConfig
from edp_mx.data.fingerprint import fingerprint, keyed
from edp_mx.data.splits import PARTS
from edp_mx.errors import UserError
from edp_mx.metrics.evaluation import Scores, evaluate
from edp_mx.privacy.factors import ClippingStatistics
from edp_mx.runs.prepare import layers_report, short_hash
from edp_mx.runs.run_directory import RunDirectory, environment
from edp_mx.runs.set_up import set_up
from edp_mx.runtime.distributed import Workers
from edp_mx.runtime.watchdog import Peer, Watchdog
from edp_mx.training.checkpoint import save_weights, set_weights, weights_of
from edp_mx.training.evaluate import predict_utterances
from edp_mx.training.log import MetricsLog
from edp_mx.training.loop import EpochSummary
from edp_mx.training.optimizer_state import optimizer_arrays, set_optimizer_arrays
from edp_mx.training.selection import Selection
from edp_mx.training.state import TrainingState

Progress = Callable[..., Iterable[Any]]
logger = logging.getLogger(__name__)


def train(
    config: ExperimentConfig,
    workers: Workers,
    run: RunDirectory,
    progress: Progress,
) -> Scores:
    """Trains one configuration and fills its run directory, or goes on where it was interrupted.

    Args:
        config: all settings.
        workers: this worker among all; each calls this with the same arguments.
        run: a folder that exists; only rank 0 writes to it. Where it holds a checkpoint, the run
            goes on from there, with fresh noise.
        progress: `progress(iterable, description, total)`: a bar, or the iterable itself.

    Returns:
        The scores on the test part.

    Raises:
        UserError: bad settings or data, or workers that disagree.
    """
    workers.agree("the configuration", short_hash(config))
    peers = workers.gather(Peer.myself(workers.rank))
    with Watchdog(
        peers=peers,
        rank=workers.rank,
        folder=run.path / ".workers",
        seconds=config.training.watchdog_seconds,
    ) as watchdog:
        return _Training(config, workers, run, progress, watchdog.progress).train()


class _Training:
    """The steps of `train`, in the order in which they are called."""

    def __init__(
        self,
        config: ExperimentConfig,
        workers: Workers,
        run: RunDirectory,
        progress: Progress,
        heartbeat: Callable[[str], None],
    ) -> None:
        self.config, self.workers, self.run = config, workers, run
        self.progress, self.heartbeat = progress, heartbeat
        self.parts = set_up(config, workers, run, heartbeat, progress)
        self.model = self.parts.prepared.model
        self.selection = Selection(self.model, config.training)
        self.first_epoch, self.seconds = 0, 0.0  # done before the run was interrupted

    def train(self) -> Scores:
        """See the function of that name."""
        self._go_on()
        self._describe()
        self._epochs()
        self.selection.restore()
        if self.workers.is_first:
            save_weights(self.model, self.run.weights)
            self.run.write("privacy", self.parts.spending.spent().to_dict())
        scores = self._score("test")
        if self.workers.is_first:
            results = {"test": scores.to_dict(), "training_seconds": self.seconds}
            self.run.write("results", results)
            self.run.checkpoint.unlink(missing_ok=True)
        return scores

    def _go_on(self) -> None:
        """Takes up where an interrupted run stood, if there is such a one."""
        path = self.run.checkpoint
        state: Optional[TrainingState] = self.workers.on_first(
            lambda: TrainingState.read(path) if path.exists() else None
        )
        if state:
            set_weights(self.model, state.weights, str(path))
            set_optimizer_arrays(self.parts.trainer, state.optimizer, str(path))
            self.selection.go_on(state.best_ser, state.best_epoch, state.best)
            self.first_epoch, self.seconds = state.epochs, state.seconds
            logger.info("going on after epoch %d", state.epochs)

    def _describe(self) -> None:
        """Writes down what the run is made from, before it begins."""
        parts, corpus = self.parts, self.parts.prepared.corpus
        logger.info(
            "%s: %d training, %d validation, %d test utterances; %d steps per epoch; "
            "%d parameters in %d layers",
            corpus.name,
            len(corpus.train),
            len(corpus.validation),
            len(corpus.test),
            parts.sampler.steps_per_epoch,
            sum(layer.size for layer in parts.flat.layers),
            len(parts.flat.layers),
        )
        logger.info("%s", parts.spending.planned().describe())
        if self.workers.is_first and not self.run.has("layers"):
            release = parts.spending.plan.release
            scales = release.layer_scales if release else None
            fingerprints = {part: keyed(fingerprint(getattr(corpus, part))) for part in PARTS}
            self.run.write(
                "environment", {**environment(self.workers.size), "fingerprints": fingerprints}
            )
            corpus.split.write(self.run.path / "split.json", corpus.utterances)
            self.run.write("vocabulary", parts.prepared.vocabulary.to_json())
            self.run.write("layers", layers_report(parts.flat.layers, scales))

    def _epochs(self) -> None:
        """Trains until the plan, the budget or the patience is at its end."""
        training, parts = self.config.training, self.parts
        log = None
        if self.workers.is_first:
            log = MetricsLog(self.run.metrics, start=self.first_epoch)
        for epoch in parts.epochs(
            training, self.workers, self.progress, self.heartbeat, first_epoch=self.first_epoch
        ):
            self.seconds += epoch.seconds
            self._refuse_diverged(epoch.epoch)
            scores = self._score("validation")
            row = self._row(epoch, scores)
            if log:
                log.add(row)
            logger.info(
                "epoch %d/%d: loss %.4f, validation SER %.2f %%, %.1f s",
                epoch.epoch + 1,
                training.epochs,
                epoch.loss,
                100 * scores.ser,
                epoch.seconds,
            )
            stops = self.selection.stops_after(epoch.epoch, scores.ser)
            self._checkpoint(epoch.epoch)
            if stops:
                break

    def _checkpoint(self, epoch: int) -> None:
        """Writes down where the run stands, so that `--resume` can go on from here."""
        mx.nd.waitall()  # a failed all-reduce that nobody waits for would be lost
        if self.workers.is_first:
            best_ser, best_epoch, best = self.selection.standing
            mark = self.parts.spending.mark()
            TrainingState(
                epochs=epoch + 1,
                seconds=self.seconds,
                best_ser=best_ser,
                best_epoch=best_epoch,
                weights=weights_of(self.model),
                optimizer=optimizer_arrays(self.parts.trainer),
                best=best,
                ledger_size=mark.size if mark else 0,
                ledger_digest=mark.digest if mark else "",
            ).write(self.run.checkpoint)

    def _refuse_diverged(self, epoch: int) -> None:
        """Ends a run whose weights are no numbers any more; they are the same on all workers."""
        for name, parameter in self.model.collect_params().items():
            if not np.isfinite(parameter.data().sum().asscalar()):
                raise UserError(
                    f"the training diverged in epoch {epoch + 1}: {name} is no longer finite; use "
                    "a smaller training.learning_rate"
                )

    def _row(self, epoch: EpochSummary, scores: Scores) -> Dict[str, Any]:
        """One line of `metrics.jsonl`."""
        row: Dict[str, Any] = {
            "epoch": epoch.epoch,
            "loss": epoch.loss,
            "seconds": epoch.seconds,
            "ser": 100 * scores.ser,
            "intent_error": 100 * (1 - scores.intent_accuracy),
            "slot_f1": 100 * scores.slot_f1,
        }
        plan = self.parts.spending.plan
        if plan.release is not None:
            row["noise_multiplier"] = plan.noise_multiplier_at(epoch.epoch)
            row.update(self._clipping(plan.release.unit))
        return row

    def _clipping(self, unit: str) -> Dict[str, float]:
        """The epoch's clipping statistics of all workers."""
        taken = self.parts.mechanism.take_statistics()
        total = ClippingStatistics.sum(self.workers.gather(taken))
        if total.non_finite:
            logger.warning(
                "%d of %d %s gradients were not finite and counted as zero; a smaller "
                "training.learning_rate may help",
                total.non_finite,
                total.units,
                unit.replace("_", "-"),
            )
        return total.as_metrics()

    def _score(self, part: str) -> Scores:
        """SER and the rest on the validation or test part, on every worker."""
        utterances = getattr(self.parts.prepared.corpus, part)
        hypotheses = predict_utterances(
            self.model,
            getattr(self.parts.prepared, part),
            utterances,
            self.parts.prepared.vocabulary,
            batch_size=self.config.training.evaluation_batch_size,
            workers=self.workers,
            wrap=lambda batches, total: self.progress(batches, f"scoring {part}", total),
            on_batch=lambda: self.heartbeat(f"scoring the {part} part"),
        )
        mx.nd.waitall()
        return evaluate(utterances, hypotheses)
