"""The settings below `training:`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Optional

from edp_mx.runtime.limits import (
    MOST_AT_ONCE,
    MOST_COUNTED,
    MOST_EPOCHS,
    MOST_NORM,
    MOST_SECONDS,
    MOST_SEED,
    MOST_WIDE,
)
from edp_mx.runtime.settings import Settings, setting
from edp_mx.training.log import TRACKERS


@dataclass(frozen=True)
class LearningRates(Settings):
    """Learning rates that differ from `training.learning_rate`, which is the default.

    Attributes:
        heads: intent layer, slot layer and CRF, which a pre-trained encoder lacks.
    """

    heads: Optional[float] = setting(None, above=0, at_most=MOST_NORM)


@dataclass(frozen=True)
class Schedule(Settings):
    """Factor of the learning rate at each step: linear warm-up, then as `kind` says.

    Attributes:
        kind: constant (stays at 1) or linear (falls to 0 at the end).
        warmup_fraction: share of all steps during which the factor rises from 0 to 1.

    Source: Devlin et al. 2019, appendix A.2 (linear, 1 % warm-up) and A.3 (10 % in fine-tuning).

    Examples:
        >>> [Schedule("linear", 0.5).factor(step, 4) for step in range(5)]
        [0.5, 1.0, 1.0, 0.5, 0.0]
    """

    kind: str = setting("constant", one_of=("constant", "linear"))
    warmup_fraction: float = setting(0.0, at_least=0, below=1)

    def factor(self, step: int, total_steps: int) -> float:
        """Return the factor in [0, 1] at a step, from 0; only beyond the last step may it be 0."""
        warmup = int(round(self.warmup_fraction * total_steps))
        if step < warmup:
            return (step + 1) / warmup
        if self.kind == "constant":
            return 1.0
        return max(0.0, (total_steps - step) / max(1, total_steps - warmup))


@dataclass(frozen=True)
class Average(Settings):
    """The average of the weights that a run is scored with and ends with.

    Attributes:
        kind: none (the last weights) or ema (an exponential moving average over the steps).
        decay: the share of the average that ema keeps at each step; less at the beginning.
    """

    kind: str = setting("none", one_of=("none", "ema"))
    decay: float = setting(0.99, above=0, below=1)


@dataclass(frozen=True)
class Checkpoints(Settings):
    """When a run writes a checkpoint, besides at the end of each epoch, to be resumed from there.

    With noise, the steps since the last checkpoint are repeated when a run is resumed, and count
    twice in ε; of a shuffled epoch, the whole epoch counts twice.

    Attributes:
        every_steps: number of steps of an epoch between two checkpoints; 0 means that there are
            none within an epoch.
        every_minutes: the same by the clock, about; 0 means that the clock decides nothing.
    """

    every_steps: int = setting(0, at_least=0, at_most=MOST_COUNTED)
    every_minutes: float = setting(0.0, at_least=0, at_most=MOST_SECONDS)


@dataclass(frozen=True)
class TrainingConfig(Settings):
    """How long a model is trained, and how fast.

    Attributes:
        epochs: number of epochs; all of them count in ε, even if training stops early.
        steps_per_epoch: with privacy.sampler: poisson, after how many steps an epoch ends; by
            default after n / batch_size, so that each utterance is drawn about once.
        batch_size: B, over all workers; the micro-batch of a worker is B/N. With dp_sgd it may be
            of any size, since privacy.chunk_size bounds the memory.
        optimizer: adam or sgd, applied to the noisy aggregate.
        loss_factor: the loss is multiplied by it before the gradient is taken: a change of its
            unit, which Adam does not see. docs/privacy.md, section 2, has the consequences.
        learning_rate: the highest step size.
        weight_decay: λ; λ times each weight is added to its gradient (the optimizer's `wd`).
        learning_rates: step sizes of groups of parameters that differ from it.
        schedule: warm-up and decay of the step size.
        average: of the weights, after each epoch and at the end.
        seed: seed of the initial weights, the dropout and the order of the records; never of the
            noise, nor of the dropout of dp_sgd, whose masks have a secret key.
        checkpoint: last, or best_on_validation (chosen on private data, which no ε covers).
        checkpoints: how often the run writes a checkpoint.
        early_stop_patience: number of epochs without a better validation score after which training
            stops; 0 means never.
        length_buckets: number of groups of similar length that batches are drawn from; 0 draws
            from all utterances.
        evaluation_batch_size: number of utterances that a worker predicts at once.
        tracking: where the numbers of metrics.jsonl are written as well: tensorboard (events/ of
            the run), mlflow (its mlruns/, or $MLFLOW_TRACKING_URI), wandb (its wandb/, offline
            unless $WANDB_MODE says otherwise) or none.
        watchdog_seconds: in seconds; a job in which nothing moves for this long is ended.
    """

    epochs: int = setting(30, at_least=1, at_most=MOST_EPOCHS)
    steps_per_epoch: Optional[int] = setting(None, at_least=1, at_most=MOST_COUNTED)
    batch_size: int = setting(64, at_least=1, at_most=MOST_AT_ONCE)
    optimizer: str = setting("adam", one_of=("adam", "sgd"))
    loss_factor: float = setting(1.0, above=0, at_most=MOST_NORM)
    learning_rate: float = setting(1e-3, above=0, at_most=MOST_NORM)
    weight_decay: float = setting(0.0, at_least=0, at_most=MOST_NORM)
    learning_rates: LearningRates = field(default_factory=LearningRates)
    schedule: Schedule = field(default_factory=Schedule)
    average: Average = field(default_factory=Average)
    seed: int = setting(0, at_least=0, at_most=MOST_SEED)
    checkpoint: str = setting("last", one_of=("last", "best_on_validation"))
    checkpoints: Checkpoints = field(default_factory=Checkpoints)
    early_stop_patience: int = setting(0, at_least=0, at_most=MOST_EPOCHS)
    length_buckets: int = setting(0, at_least=0, at_most=MOST_WIDE)
    evaluation_batch_size: int = setting(256, at_least=1, at_most=MOST_AT_ONCE)
    tracking: str = setting("tensorboard", one_of=tuple(TRACKERS))
    watchdog_seconds: float = setting(600.0, above=0, at_most=MOST_SECONDS)
