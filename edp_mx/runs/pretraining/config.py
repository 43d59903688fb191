"""The configuration of a pre-training run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Optional

from edp_mx.data.text import TextConfig
from edp_mx.errors import UserError
from edp_mx.models.bert import BERTConfig
from edp_mx.runtime.files import path_field
from edp_mx.runtime.settings import Settings, setting


@dataclass(frozen=True)
class PiecesConfig(Settings):
    """The keys below `vocabulary:`, the word pieces; `model.checkpoint` brings its own.

    Attributes:
        path: a vocab.txt; left out, the pieces are learned from the training text.
        size: how many are learned at most.
        min_count: pairs that are rarer are not joined.
        lowercase: whether the text is read in lower case, without accents.
    """

    path: Optional[str] = path_field()
    size: int = setting(30_522, at_least=10)
    min_count: int = setting(2, at_least=1)
    lowercase: bool = True


@dataclass(frozen=True)
class PretrainingSettings(Settings):
    """The keys below `pretraining:`.

    Attributes:
        epochs: passes over the text, each with other masks and another order.
        batch_size: lines a step, over all workers.
        learning_rate: the highest, after the warm-up; from there it falls linearly to 0.
        warmup_fraction: so much of all steps the learning rate rises.
        weight_decay: decoupled, on matrices and embeddings.
        max_grad_norm: the norm of the averaged gradient is cut to it; left out (null), it is not.
        max_pieces: what is longer, with [CLS] and [SEP], is cut.
        mask_fraction: of the pieces, chosen to be guessed.
        seed: initial weights, order, masks, dropout.
        log_every: steps between two lines of metrics.jsonl.
        evaluate_every: steps between two measures of the held-out perplexity; 0 measures after
            each epoch. The end is always measured.
        checkpoint_every: steps between two checkpoints, a multiple of log_every; 0 writes one only
            after each epoch, which is done in any case.
        evaluation_batch_size: held-out lines scored at once by a worker.
        watchdog_seconds: a job in which nothing moves for so long is ended.
    """

    epochs: int = setting(10, at_least=1)
    batch_size: int = setting(64, at_least=1)
    learning_rate: float = setting(5e-4, above=0)
    warmup_fraction: float = setting(0.1, at_least=0, below=1)
    weight_decay: float = setting(0.01, at_least=0, below=1)
    max_grad_norm: Optional[float] = setting(1.0, above=0)
    max_pieces: int = setting(128, at_least=3)
    mask_fraction: float = setting(0.15, above=0, at_most=1)
    seed: int = setting(0, at_least=0)
    log_every: int = setting(50, at_least=1)
    evaluate_every: int = setting(0, at_least=0)
    checkpoint_every: int = setting(0, at_least=0)
    evaluation_batch_size: int = setting(64, at_least=1)
    watchdog_seconds: float = setting(600.0, above=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.checkpoint_every % self.log_every:
            raise UserError(
                f"pretraining.checkpoint_every: {self.checkpoint_every} is not a multiple of "
                f"log_every ({self.log_every})"
            )


@dataclass(frozen=True)
class PretrainingConfig:
    """Everything that one pre-training run is made from.

    Attributes:
        name: begins the name of the run directory.
        text: what is read; it must be public, since pre-training has no privacy.
        vocabulary: the word pieces.
        model: the BERT; `checkpoint` continues from that one.
        pretraining: steps, batches, masks, seeds.
    """

    name: str = "pretraining"
    text: TextConfig = field(default_factory=TextConfig)
    vocabulary: PiecesConfig = field(default_factory=PiecesConfig)
    model: BERTConfig = field(default_factory=BERTConfig)
    pretraining: PretrainingSettings = field(default_factory=PretrainingSettings)

    def __post_init__(self) -> None:
        if self.vocabulary.path is not None and self.model.checkpoint is not None:
            raise UserError(
                "vocabulary.path: model.checkpoint brings its own word pieces; leave out one of "
                "the two"
            )
        if self.pretraining.max_pieces > self.model.max_positions:
            raise UserError(
                f"pretraining.max_pieces: {self.pretraining.max_pieces} is more than "
                f"model.max_positions ({self.model.max_positions})"
            )
