"""What a training run is made from, before its first step."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Callable, Iterable, Iterator, Optional

from edp_mx.config import ExperimentConfig
from edp_mx.data.poisson_sampling import AnyShard, PoissonShard
from edp_mx.data.sampling import Shard
from edp_mx.data.store import Progress, plainly
from edp_mx.distributed import Workers, device
from edp_mx.experiments.first_worker import on_first_worker
from edp_mx.experiments.mechanism import build_mechanism
from edp_mx.experiments.plan import facts_of, guarantee_of, planned_entries, with_noise
from edp_mx.experiments.prepare import Prepared, broadcast_weights, prepare
from edp_mx.experiments.run_directory import RunDirectory
from edp_mx.experiments.spending import Spending
from edp_mx.privacy.flat import FlatGradients
from edp_mx.privacy.layers import layers_of
from edp_mx.privacy.mechanism import Mechanism
from edp_mx.privacy.trainer import PrivateTrainer
from edp_mx.training.config import TrainingConfig
from edp_mx.training.learning_rates import set_learning_rates
from edp_mx.training.loop import EpochSummary, epochs


@dataclass(frozen=True, eq=False)
class SetUp:
    """Corpus and model, this worker's records, the mechanism, its trainer, and what it may spend.

    Attributes:
        prepared: corpus, vocabulary, encoded parts, model.
        shard: this worker's records, and which of them are in which step.
        flat: the gradients.
        mechanism: eDP-SGD or DP-SGD, or None without privacy.
        trainer: updates the model.
        spending: the plan, the ledger and the budget.
    """

    prepared: Prepared
    shard: AnyShard
    flat: FlatGradients
    mechanism: Optional[Mechanism]
    trainer: PrivateTrainer
    spending: Spending

    def epochs(
        self,
        training: TrainingConfig,
        workers: Workers,
        progress: Callable[..., Iterable[Any]],
        alive: Callable[[str], None],
        *,
        first_epoch: int = 0,
    ) -> Iterator[EpochSummary]:
        """Trains as it is planned and permitted; see `training.loop.epochs`.

        Args:
            progress: `progress(iterable, description, total)`: a bar, or the iterable itself.
            alive: told of each step: the watchdog listens.
        """
        return epochs(
            self.prepared.model,
            self.trainer,
            self.prepared.train,
            self.shard,
            first_epoch=first_epoch,
            num_epochs=training.epochs,
            schedule=training.schedule,
            seed=training.seed,
            workers=workers,
            permit=self.spending.permit,
            on_step=alive,
            wrap=lambda batches, epoch, steps: progress(
                batches, f"epoch {epoch + 1}/{training.epochs}", steps
            ),
        )


def set_up(
    config: ExperimentConfig,
    workers: Workers,
    run: RunDirectory,
    alive: Callable[[str], None],
    progress: Progress = plainly,
) -> SetUp:
    """Prepares everything; what is impossible or has no accountant is refused here.

    Args:
        config, workers, run: as in `train`; a run directory with a checkpoint is resumed.
        alive: told of progress: the watchdog listens.
        progress: see `prepare`.

    Raises:
        UserError: bad settings or data, workers that disagree, or a budget that is spent.
    """
    alive("preparing the data")
    prepared = prepare(config, workers, device(workers), alive, progress)
    return set_up_on(prepared, config, workers, run, alive)


def set_up_on(
    prepared: Prepared,
    config: ExperimentConfig,
    workers: Workers,
    run: RunDirectory,
    alive: Callable[[str], None],
) -> SetUp:
    """The same on a corpus that is prepared already.

    Args:
        prepared: its training part is dealt out, and counted as n, as it is given.
        config, workers, run, alive: as in `set_up`.

    Raises:
        UserError: settings that are impossible or have no accountant, or a budget that is spent.
    """
    shard = shard_of(config, workers, prepared)
    broadcast_weights(prepared.model, workers)
    flat = FlatGradients(layers_of(prepared.model))
    config = with_noise(
        config, lambda trial: _planned_epsilon(trial, prepared, shard, workers.size)
    )
    facts = facts_of(config, prepared, shard, workers.size)
    spending = Spending(config, workers, run, shard, facts)
    spending.on_layer_scales()
    mechanism = build_mechanism(
        config,
        workers,
        prepared,
        shard,
        flat,
        scales=on_first_worker(workers, run.layer_scales),
        on_pass=alive,
    )
    training = config.training
    set_learning_rates(prepared.model, training.learning_rate, training.learning_rates)
    trainer = PrivateTrainer(
        flat=flat,
        mechanism=mechanism,
        optimizer=training.optimizer,
        optimizer_params={"learning_rate": training.learning_rate},
    )
    return SetUp(prepared, shard, flat, mechanism, trainer, spending)


def _planned_epsilon(
    config: ExperimentConfig, prepared: Prepared, shard: AnyShard, num_workers: int
) -> float:
    """ε of the whole plan, under the conditions that the report will name."""
    facts = facts_of(config, prepared, shard, num_workers)
    epsilon = guarantee_of(facts, planned_entries(config, shard, num_workers)).holds_if.epsilon
    return math.inf if epsilon.value is None else epsilon.value


def shard_of(config: ExperimentConfig, workers: Workers, prepared: Prepared) -> AnyShard:
    """This worker's part of the training records, with the configured sampler."""
    training, privacy = config.training, config.privacy
    if privacy.sampler == "poisson":
        return PoissonShard.deal(
            len(prepared.train),
            batch_size=training.batch_size,
            rank=workers.rank,
            num_workers=workers.size,
            seed=training.seed,
            length_buckets=training.length_buckets,
            insecure_fixed_seed=privacy.insecure_fixed_seed,
        )
    return Shard.deal(
        len(prepared.train),
        batch_size=training.batch_size,
        rank=workers.rank,
        num_workers=workers.size,
        seed=training.seed,
        lengths=prepared.train.lengths,
        length_buckets=training.length_buckets,
        adjacency=privacy.adjacency,
    )
