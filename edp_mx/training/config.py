"""The keys below `training:`."""

from __future__ import annotations

from dataclasses import dataclass, field

from edp_mx.runtime.settings import Settings, setting
from edp_mx.training.learning_rates import LearningRates
from edp_mx.training.schedule import Schedule


@dataclass(frozen=True)
class TrainingConfig(Settings):
    """How long and how fast to train.

    Attributes:
        epochs: how many; fixed beforehand, and counted in ε even if early stopping ends sooner.
        batch_size: B, over all workers; each worker's micro-batch is B/N. With dp_sgd it may be as
            large as one likes: memory is bounded by privacy.chunk_size.
        optimizer: adam or sgd, applied to the noisy aggregate.
        learning_rate: step size, at its highest.
        learning_rates: of groups of parameters, where they differ.
        schedule: warm-up, and whether the step size stays or falls to 0.
        seed: initial weights, dropout and the order of the records (never the noise, nor the
            dropout of dp_sgd, whose masks have a secret key).
        checkpoint: last, or best_on_validation (chosen on private data: outside ε).
        early_stop_patience: epochs without a better validation SER before stopping; 0 never stops.
        length_buckets: batches of similar length; 0 makes random batches.
        evaluation_batch_size: utterances predicted at once by a worker.
        watchdog_seconds: a job in which nothing moves for so long is ended.
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
