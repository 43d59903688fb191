"""The settings of a pre-training run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Optional

from edp_mx.data.text import TextConfig
from edp_mx.models.bert import BERTConfig
from edp_mx.runtime.files import path_field
from edp_mx.runtime.limits import (
    LEAST_NORM,
    MOST_AT_ONCE,
    MOST_COUNTED,
    MOST_EPOCHS,
    MOST_NORM,
    MOST_SECONDS,
    MOST_SEED,
    MOST_WIDE,
)
from edp_mx.runtime.settings import SettingError, Settings, setting


@dataclass(frozen=True)
class PiecesConfig(Settings):
    """The settings below `vocabulary:`; a `model.checkpoint` has word pieces of its own.

    Attributes:
        path: a vocab.txt; by default the pieces are learned from the training text.
        size: the largest number of pieces that are learned.
        min_count: rarer pairs are not joined.
        lowercase: whether the text is read in lower case and without accents.
    """

    path: Optional[str] = path_field()
    size: int = setting(30_522, at_least=10, at_most=MOST_AT_ONCE)
    min_count: int = setting(2, at_least=1, at_most=MOST_COUNTED)
    lowercase: bool = True


@dataclass(frozen=True)
class PretrainingSettings(Settings):
    """The settings below `pretraining:`.

    Attributes:
        epochs: number of passes over the text, each with other masks and in another order.
        batch_size: lines per step, over all workers.
        learning_rate: the highest, after the warm-up; from there it falls linearly to 0.
        warmup_fraction: fraction of all steps in which the learning rate rises.
        weight_decay: decoupled, on matrices and embeddings.
        max_grad_norm: limit of the norm of the averaged gradient; null means no limit.
        max_pieces: longer lines are cut off; includes [CLS] and [SEP].
        mask_fraction: fraction of the pieces that are to be guessed.
        seed: seed of the initial weights, the order, the masks and the dropout.
        log_every: steps between two lines of metrics.jsonl.
        evaluate_every: steps between two measurements of the held-out perplexity; 0 measures after
            each epoch. It is always measured at the end.
        checkpoint_every: steps between two checkpoints, a multiple of log_every. A checkpoint is
            also written after each epoch; 0 writes only those.
        evaluation_batch_size: number of held-out lines that a worker scores at once.
        watchdog_seconds: in seconds; a job in which nothing moves for this long is ended.
    """

    epochs: int = setting(10, at_least=1, at_most=MOST_EPOCHS)
    batch_size: int = setting(64, at_least=1, at_most=MOST_AT_ONCE)
    learning_rate: float = setting(5e-4, above=0, at_most=MOST_NORM)
    warmup_fraction: float = setting(0.1, at_least=0, below=1)
    weight_decay: float = setting(0.01, at_least=0, below=1)
    max_grad_norm: Optional[float] = setting(1.0, at_least=LEAST_NORM, at_most=MOST_NORM)
    max_pieces: int = setting(128, at_least=3, at_most=MOST_WIDE)
    mask_fraction: float = setting(0.15, above=0, at_most=1)
    seed: int = setting(0, at_least=0, at_most=MOST_SEED)
    log_every: int = setting(50, at_least=1, at_most=MOST_COUNTED)
    evaluate_every: int = setting(0, at_least=0, at_most=MOST_COUNTED)
    checkpoint_every: int = setting(0, at_least=0, at_most=MOST_COUNTED)
    evaluation_batch_size: int = setting(64, at_least=1, at_most=MOST_AT_ONCE)
    watchdog_seconds: float = setting(600.0, above=0, at_most=MOST_SECONDS)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.checkpoint_every % self.log_every:
            raise SettingError(
                "checkpoint_every",
                f"must be a multiple of log_every ({self.log_every}), not {self.checkpoint_every}",
            )


@dataclass(frozen=True)
class PretrainingConfig:
    """All settings of one pre-training run, whose text must be public, since it has no privacy.

    With `model.checkpoint`, pre-training goes on from that model.

    Attributes:
        name: the beginning of the run directory's name; by default the name of the file.
    """

    name: str = "pretraining"
    text: TextConfig = field(default_factory=TextConfig)
    vocabulary: PiecesConfig = field(default_factory=PiecesConfig)
    model: BERTConfig = field(default_factory=BERTConfig)
    pretraining: PretrainingSettings = field(default_factory=PretrainingSettings)

    def __post_init__(self) -> None:
        if self.model.trained != "all":
            raise SettingError(
                "model.trained", f"must be all in pre-training, not {self.model.trained!r}"
            )
        if self.model.intents != "pooled":
            raise SettingError(
                "model.intents", f"must be pooled in pre-training, not {self.model.intents!r}"
            )
        if self.vocabulary.path is not None and self.model.checkpoint is not None:
            raise SettingError(
                "vocabulary.path",
                "must be left out, because model.checkpoint has word pieces of its own",
            )
        if self.pretraining.max_pieces > self.model.max_positions:
            raise SettingError(
                "pretraining.max_pieces",
                f"must be at most model.max_positions ({self.model.max_positions}), "
                f"not {self.pretraining.max_pieces}",
            )
