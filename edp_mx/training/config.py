"""The settings below `training:`."""

from __future__ import annotations

from dataclasses import dataclass, field

from edp_mx.runtime.settings import Settings, setting
from edp_mx.training.learning_rates import LearningRates
from edp_mx.training.schedule import Schedule


@dataclass(frozen=True)
class TrainingConfig(Settings):
    """How long a model is trained, and how fast.

    Attributes:
        epochs: number of epochs; all of them count in ε, even if training stops early.
        batch_size: B, over all workers; the micro-batch of a worker is B/N. With dp_sgd it may be
            of any size, since privacy.chunk_size bounds the memory.
        optimizer: adam or sgd, applied to the noisy aggregate.
        learning_rate: the highest step size.
        learning_rates: step sizes of groups of parameters that differ from it.
        schedule: warm-up and decay of the step size.
        seed: seed of the initial weights, the dropout and the order of the records; never of the
            noise, nor of the dropout of dp_sgd, whose masks have a secret key.
        checkpoint: last, or best_on_validation (chosen on private data, which no ε covers).
        early_stop_patience: number of epochs without a better validation SER after which training
            stops; 0 means never.
        length_buckets: number of groups of similar length that batches are drawn from; 0 draws
            from all utterances.
        evaluation_batch_size: number of utterances that a worker predicts at once.
        watchdog_seconds: a job in which nothing moves for this long is ended.
    """

    epochs: int = setting(30, at_least=1)
    batch_size: int = setting(64, at_least=1)
    optimizer: str = setting("adam", one_of=("adam", "sgd"))
    learning_rate: float = setting(1e-3, above=0)
    learning_rates: LearningRates = field(default_factory=LearningRates)
    schedule: Schedule = field(default_factory=Schedule)
    seed: int = setting(0, at_least=0)
    checkpoint: str = setting("last", one_of=("last", "best_on_validation"))
    early_stop_patience: int = setting(0, at_least=0)
    length_buckets: int = setting(0, at_least=0)
    evaluation_batch_size: int = setting(256, at_least=1)
    watchdog_seconds: float = setting(600.0, above=0)
