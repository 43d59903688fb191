"""One training run, from a configuration to a run directory."""

from __future__ import annotations

import logging
from typing import Any, Callable, Dict, Iterable, Optional

import mxnet as mx
import numpy as np

from edp_mx.accounting.guarantee import guarantee
from edp_mx.config import ExperimentConfig
from edp_mx.data.corpus import PUBLIC_CORPORA
from edp_mx.data.sampling import Shard
from edp_mx.data.splits import PARTS
from edp_mx.distributed import Workers, device
from edp_mx.errors import UserError
from edp_mx.experiments.mechanism import build_mechanism
from edp_mx.experiments.prepare import (
    broadcast_weights,
    fingerprint,
    layers_report,
    prepare,
    short_hash,
)
from edp_mx.experiments.run_directory import RunDirectory, environment
from edp_mx.metrics.evaluation import Scores, evaluate
from edp_mx.privacy.flat import FlatGradients
from edp_mx.privacy.layers import layers_of
from edp_mx.privacy.mechanism import EDPSGD, ClippingStatistics
from edp_mx.privacy.trainer import PrivateTrainer
from edp_mx.training.checkpoint import save_weights
from edp_mx.training.evaluate import predict_utterances
from edp_mx.training.learning_rates import set_learning_rates
from edp_mx.training.log import MetricsLog
from edp_mx.training.loop import EpochSummary, epochs
from edp_mx.training.selection import Selection
from edp_mx.watchdog import Peer, Watchdog

logger = logging.getLogger(__name__)


def train(
    config: ExperimentConfig,
    workers: Workers,
    run: RunDirectory,
    progress: Callable[..., Iterable[Any]],
) -> Scores:
    """Trains one configuration and fills its run directory.

    Args:
        config: all settings.
        workers: this worker among all; each calls this with the same arguments.
        run: a folder that exists; only rank 0 writes results to it.
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
        progress: Callable[..., Iterable[Any]],
        alive: Callable[[str], None],
    ) -> None:
        self.config, self.workers, self.run = config, workers, run
        self.progress, self.alive = progress, alive

    def train(self) -> Scores:
        """See the function of that name."""
        self.alive("preparing the data")
        self.prepared = prepare(self.config, self.workers, device(self.workers))
        self.shard = self._shard()
        broadcast_weights(self.prepared.model, self.workers)
        flat = FlatGradients(layers_of(self.prepared.model))
        self.mechanism = build_mechanism(self.config, self.workers, self.prepared, self.shard, flat)
        self.guarantee = self._guarantee()  # before training: a refusal must not cost a run
        self._describe(flat)
        training = self.config.training
        set_learning_rates(self.prepared.model, training.learning_rate, training.learning_rates)
        trainer = PrivateTrainer(
            flat=flat,
            mechanism=self.mechanism,
            optimizer=training.optimizer,
            optimizer_params={"learning_rate": training.learning_rate},
        )
        seconds = self._epochs(trainer)
        if self.workers.is_first:
            save_weights(self.prepared.model, self.run.weights)
            self.run.write("privacy", self.guarantee.to_dict())
        scores = self._score("test")
        if self.workers.is_first:
            self.run.write("results", {"test": scores.to_dict(), "training_seconds": seconds})
        return scores

    def _shard(self) -> Shard:
        training, privacy = self.config.training, self.config.privacy
        return Shard.deal(
            len(self.prepared.train),
            batch_size=training.batch_size,
            rank=self.workers.rank,
            num_workers=self.workers.size,
            seed=training.seed,
            lengths=self.prepared.train.lengths,
            length_buckets=training.length_buckets,
            adjacency=privacy.adjacency,
        )

    def _guarantee(self) -> Any:
        """What the run will have spent in the end; early stopping does not make it cheaper."""
        privacy, training, prepared = self.config.privacy, self.config.training, self.prepared
        mechanism: Optional[EDPSGD] = self.mechanism
        return guarantee(
            mechanism=privacy.mechanism,
            release=mechanism.release if mechanism else None,
            noise_multiplier=privacy.noise_multiplier,
            decay=privacy.decay,
            epochs=training.epochs,
            steps=training.epochs * self.shard.steps_per_epoch,
            num_examples=len(prepared.train),
            delta=privacy.delta,
            delta_mode=privacy.delta_mode,
            corpus_is_public=prepared.corpus.name in PUBLIC_CORPORA,
            sampler="shuffle",
            scales_source=privacy.layer_scales,
            vocabulary_is_public=prepared.vocabulary.is_public,
            seed_is_fixed=privacy.insecure_fixed_seed is not None,
            best_checkpoint_on_validation=training.checkpoint == "best_on_validation",
            stops_early=training.early_stop_patience > 0,
            uses_lengths=training.length_buckets > 0,
        )

    def _describe(self, flat: FlatGradients) -> None:
        """Writes down what the run is made from, before it begins."""
        corpus = self.prepared.corpus
        logger.info(
            "%s: %d training, %d validation, %d test utterances; %d steps an epoch; "
            "%d parameters in %d layers",
            corpus.name,
            len(corpus.train),
            len(corpus.validation),
            len(corpus.test),
            self.shard.steps_per_epoch,
            sum(layer.size for layer in flat.layers),
            len(flat.layers),
        )
        logger.info("%s", self.guarantee.describe())
        if self.workers.is_first:
            scales = self.mechanism.release.layer_scales if self.mechanism else None
            fingerprints = {part: fingerprint(getattr(corpus, part)) for part in PARTS}
            self.run.write(
                "environment", {**environment(self.workers.size), "fingerprints": fingerprints}
            )
            self.run.write("split", corpus.split.to_json(corpus.utterances))
            self.run.write("vocabulary", self.prepared.vocabulary.to_json())
            self.run.write("layers", layers_report(flat.layers, scales))

    def _epochs(self, trainer: PrivateTrainer) -> float:
        """Trains; leaves the chosen weights in the model; returns the seconds spent in epochs."""
        training, seconds = self.config.training, 0.0
        selection = Selection(self.prepared.model, training)
        log = MetricsLog(self.run.metrics) if self.workers.is_first else None
        for epoch in epochs(
            self.prepared.model,
            trainer,
            self.prepared.train,
            self.shard,
            num_epochs=training.epochs,
            schedule=training.schedule,
            seed=training.seed,
            workers=self.workers,
            on_step=self.alive,
            wrap=lambda batches, epoch, steps: self.progress(
                batches, f"epoch {epoch + 1}/{training.epochs}", steps
            ),
        ):
            seconds += epoch.seconds
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
            if selection.stops_after(epoch.epoch, scores.ser):
                break
        selection.restore()
        return seconds

    def _refuse_diverged(self, epoch: int) -> None:
        """Ends a run whose weights are no numbers any more; they are the same on all workers."""
        for name, parameter in self.prepared.model.collect_params().items():
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
        if self.mechanism:
            privacy = self.config.privacy
            row["noise_multiplier"] = privacy.decay.noise_multiplier_at(
                privacy.noise_multiplier, epoch.epoch
            )
            row.update(self._clipping(self.mechanism))
        return row

    def _clipping(self, mechanism: EDPSGD) -> Dict[str, float]:
        """The epoch's clipping statistics of all workers."""
        total = ClippingStatistics.sum(self.workers.gather(mechanism.statistics))
        mechanism.statistics = ClippingStatistics()
        if total.non_finite:
            logger.warning(
                "%d of %d micro-batch gradients were not finite and counted as zero; a smaller "
                "training.learning_rate may help",
                total.non_finite,
                total.steps,
            )
        return total.as_metrics()

    def _score(self, part: str) -> Scores:
        """SER and the rest on the validation or test part, on every worker."""
        utterances = getattr(self.prepared.corpus, part)
        hypotheses = predict_utterances(
            self.prepared.model,
            getattr(self.prepared, part),
            utterances,
            self.prepared.vocabulary,
            batch_size=self.config.training.evaluation_batch_size,
            workers=self.workers,
            wrap=lambda batches, total: self.progress(batches, f"scoring {part}", total),
            on_batch=lambda: self.alive(f"scoring the {part} part"),
        )
        mx.nd.waitall()
        return evaluate(utterances, hypotheses)
