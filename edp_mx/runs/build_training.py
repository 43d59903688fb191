"""Everything that a training run needs before its first step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from edp_mx.config import ExperimentConfig
from edp_mx.dp.privacy.flat import FlatGradients
from edp_mx.dp.privacy.layers import layers_of
from edp_mx.dp.privacy.trainer import PrivateTrainer
from edp_mx.dp.weights import broadcast_weights
from edp_mx.runs.ancestors import Brought, brought_along
from edp_mx.runs.corpus_budget import refuse_overdraft
from edp_mx.runs.mechanism import build_mechanism
from edp_mx.runs.plan import plan_for, sampler_for
from edp_mx.runs.prepare import Prepared
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runs.spending import RunSpending
from edp_mx.runtime.distributed import Workers
from edp_mx.runtime.progress import Heartbeat, Progress, no_heartbeat, no_progress
from edp_mx.tasks.model import TaskModel
from edp_mx.training.averaging import WeightAverage
from edp_mx.training.config import LearningRates
from edp_mx.training.loop import TrainingLoop


@dataclass(frozen=True, eq=False)
class Training:
    """A run that is ready to train; `loop` trains the model as `spending` permits.

    `prepared` has the part of the model that is trained, `model` is the whole one.
    """

    prepared: Prepared
    model: TaskModel
    flat: FlatGradients
    spending: RunSpending
    loop: TrainingLoop


def build_training(
    prepared: Prepared,
    config: ExperimentConfig,
    workers: Workers,
    run: RunDirectory,
    heartbeat: Heartbeat = no_heartbeat,
    progress: Progress = no_progress,
) -> Training:
    """Build sampler, plan, ledger, mechanism and trainer; refuse uncountable plans.

    The training part of `prepared` is dealt out, and counted as n, as it is given. The run keeps
    the ledger; where it holds a checkpoint, the run is resumed.
    """
    training, train = config.training, prepared.train
    share = {"rank": workers.rank, "num_workers": workers.size}
    sampler = sampler_for(config, len(train), users=prepared.users, lengths=train.lengths, **share)
    broadcast_weights(prepared.model, workers)
    whole = prepared.model
    if sampler.sample_rate * sampler.steps_per_epoch * training.epochs > 0.5:  # draws of a unit
        prepared = prepared.above_frozen(run.path, heartbeat, progress)
    flat = FlatGradients(layers_of(prepared.model))
    trainer = _trainer(whole, config, flat, workers)
    corpus = prepared.corpus
    brought: Any = workers.on_first(lambda: tuple(brought_along(config, corpus)))
    brought = Brought(*brought)
    plan = plan_for(config, corpus, prepared.vocabulary, sampler, workers.size, brought=brought)
    spending = RunSpending(plan, workers, run)
    workers.on_first(lambda: refuse_overdraft(config, run, spending, corpus.train))
    mechanism = build_mechanism(
        config, workers, prepared, sampler, flat, spending=spending, heartbeat=heartbeat
    )
    set_learning_rates(whole, training.learning_rate, training.learning_rates)
    average = None
    if training.average.kind != "none":
        average = WeightAverage(trainer.parameters, decay=training.average.decay)
    loop = TrainingLoop(
        model=prepared.model,
        corpus=prepared.train,
        sampler=sampler,
        mechanism=mechanism,
        trainer=trainer,
        config=training,
        workers=workers,
        permit=spending.permit,
        heartbeat=heartbeat,
        average=average,
    )
    return Training(prepared, whole, flat, spending, loop)


def _trainer(
    model: TaskModel, config: ExperimentConfig, flat: FlatGradients, workers: Workers
) -> PrivateTrainer:
    training = config.training
    return config.model.trained_part.trainer(
        model.encoder,
        config.model,
        seed=training.seed,
        workers=workers,
        flat=flat,
        optimizer=training.optimizer,
        optimizer_params={"learning_rate": training.learning_rate, "wd": training.weight_decay},
    )


def set_learning_rates(model: TaskModel, base: float, rates: LearningRates) -> None:
    """Give the parameters of the heads their learning rate, as a multiple of the base."""
    heads = [p for head in model.heads.values() for p in head.collect_params().values()]
    for parameter in heads:
        parameter.lr_mult = 1.0 if rates.heads is None else rates.heads / base
