"""What a training run is made from, before its first step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Iterable, Iterator

from edp_mx.config import ExperimentConfig
from edp_mx.data.dealing import deal
from edp_mx.data.draws import Sampler
from edp_mx.data.store import Progress, plainly
from edp_mx.privacy.flat import FlatGradients
from edp_mx.privacy.layers import layers_of
from edp_mx.privacy.mechanism import AnyMechanism
from edp_mx.privacy.trainer import PrivateTrainer
from edp_mx.runs.mechanism import build_mechanism
from edp_mx.runs.plan import plan_for
from edp_mx.runs.prepare import Prepared, broadcast_weights, prepare
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runs.spending import Spending
from edp_mx.runtime.distributed import Workers, device
from edp_mx.training.config import TrainingConfig
from edp_mx.training.learning_rates import set_learning_rates
from edp_mx.training.loop import EpochSummary, epochs


@dataclass(frozen=True, eq=False)
class SetUp:
    """Corpus and model, this worker's records, the mechanism, its trainer, and what it may spend.

    Attributes:
        prepared: corpus, vocabulary, encoded parts, model.
        sampler: this worker's records, and which of them are in which step.
        flat: the gradients.
        mechanism: clips and noises, or does neither.
        trainer: updates the model.
        spending: the plan, the ledger and the budget.
    """

    prepared: Prepared
    sampler: Sampler
    flat: FlatGradients
    mechanism: AnyMechanism
    trainer: PrivateTrainer
    spending: Spending

    def epochs(
        self,
        training: TrainingConfig,
        workers: Workers,
        progress: Callable[..., Iterable[Any]],
        heartbeat: Callable[[str], None],
        *,
        first_epoch: int = 0,
    ) -> Iterator[EpochSummary]:
        """Trains as it is planned and permitted; see `training.loop.epochs`.

        Args:
            progress: `progress(iterable, description, total)`: a bar, or the iterable itself.
            heartbeat: told of each step: the watchdog listens.
        """
        return epochs(
            self.prepared.model,
            self.mechanism,
            self.trainer,
            self.prepared.train,
            self.sampler,
            first_epoch=first_epoch,
            num_epochs=training.epochs,
            schedule=training.schedule,
            seed=training.seed,
            workers=workers,
            permit=self.spending.permit,
            heartbeat=heartbeat,
            wrap=lambda batches, epoch, steps: progress(
                batches, f"epoch {epoch + 1}/{training.epochs}", steps
            ),
        )


def set_up(
    config: ExperimentConfig,
    workers: Workers,
    run: RunDirectory,
    heartbeat: Callable[[str], None],
    progress: Progress = plainly,
) -> SetUp:
    """Prepares everything; what is impossible or has no accountant is refused here.

    Args:
        config, workers, run: as in `train`; a run directory with a checkpoint is resumed.
        heartbeat: told of progress: the watchdog listens.
        progress: see `prepare`.

    Raises:
        UserError: bad settings or data, workers that disagree, or a budget that is spent.
    """
    heartbeat("preparing the data")
    prepared = prepare(config, workers, device(workers), heartbeat, progress)
    return set_up_on(prepared, config, workers, run, heartbeat)


def set_up_on(
    prepared: Prepared,
    config: ExperimentConfig,
    workers: Workers,
    run: RunDirectory,
    heartbeat: Callable[[str], None],
) -> SetUp:
    """The same on a corpus that is prepared already.

    Args:
        prepared: its training part is dealt out, and counted as n, as it is given.
        config, workers, run, heartbeat: as in `set_up`.

    Raises:
        UserError: settings that are impossible or have no accountant, or a budget that is spent.
    """
    sampler = sampler_for(config, workers, prepared)
    broadcast_weights(prepared.model, workers)
    flat = FlatGradients(layers_of(prepared.model))
    plan = plan_for(config, prepared, sampler, workers.size)
    spending = Spending(plan, workers, run)
    mechanism = build_mechanism(
        config, workers, prepared, sampler, flat, spending=spending, heartbeat=heartbeat
    )
    training = config.training
    set_learning_rates(prepared.model, training.learning_rate, training.learning_rates)
    trainer = PrivateTrainer(
        flat=flat,
        optimizer=training.optimizer,
        optimizer_params={"learning_rate": training.learning_rate},
    )
    return SetUp(prepared, sampler, flat, mechanism, trainer, spending)


def sampler_for(config: ExperimentConfig, workers: Workers, prepared: Prepared) -> Sampler:
    """This worker's part of the training records, drawn as configured.

    Raises:
        UserError: a batch that cannot be dealt out, or users that are not named.
    """
    training, privacy = config.training, config.privacy
    assert privacy.unit is not None  # PrivacyConfig settles it
    return deal(
        unit=privacy.unit,
        sampler=privacy.sampler,
        num_records=len(prepared.train),
        batch_size=training.batch_size,
        rank=workers.rank,
        num_workers=workers.size,
        seed=training.seed,
        micro_batches_per_worker=privacy.micro_batches_per_worker,
        users=prepared.users if privacy.unit == "user" else None,
        max_utterances_per_user=privacy.max_utterances_per_user,
        length_buckets=training.length_buckets,
        lengths=prepared.train.lengths,
        adjacency=privacy.adjacency,
        insecure_fixed_seed=privacy.insecure_fixed_seed,
    )
