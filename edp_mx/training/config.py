"""The keys below `training:`."""

from __future__ import annotations

from dataclasses import dataclass, field

from edp_mx.errors import UserError
from edp_mx.training.learning_rates import LearningRates
from edp_mx.training.schedule import Schedule


@dataclass(frozen=True)
class TrainingConfig:
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

    epochs: int = 30
    batch_size: int = 64
    optimizer: str = "adam"
    learning_rate: float = 1e-3
    learning_rates: LearningRates = field(default_factory=LearningRates)
    schedule: Schedule = field(default_factory=Schedule)
    seed: int = 0
    checkpoint: str = "last"
    early_stop_patience: int = 0
    length_buckets: int = 0
    evaluation_batch_size: int = 256
    watchdog_seconds: float = 600.0

    def __post_init__(self) -> None:
        for key in ("epochs", "batch_size", "evaluation_batch_size"):
            if getattr(self, key) < 1:
                raise UserError(f"{key} is {getattr(self, key)}; it must be 1 or more")
        for key in ("learning_rate", "watchdog_seconds"):
            if not 0 < getattr(self, key) < float("inf"):
                raise UserError(f"{key} is {getattr(self, key)}; it must be above 0")
        for key in ("seed", "early_stop_patience", "length_buckets"):
            if getattr(self, key) < 0:
                raise UserError(f"{key} is {getattr(self, key)}; it must be 0 or more")
        choices = {"optimizer": ("adam", "sgd"), "checkpoint": ("last", "best_on_validation")}
        for key, allowed in choices.items():
            if getattr(self, key) not in allowed:
                raise UserError(
                    f"{key} is {getattr(self, key)!r}; choose one of {', '.join(allowed)}"
                )
