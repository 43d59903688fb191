"""Trains a model only to be asked about its training part: shadows, and models with canaries."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Callable, Iterable, Optional

from edp_mx.config import ExperimentConfig
from edp_mx.data.corpus import Corpus
from edp_mx.data.splits import PARTS
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.runs.build import (
    checkpoint_for,
    encode_part,
    model_for,
    start_from_pretrained,
    vocabulary_for,
)
from edp_mx.runs.prepare import Prepared, training_users
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runs.set_up import set_up_on
from edp_mx.runtime.distributed import Workers, device


def prepare_on(
    corpus: Corpus,
    config: ExperimentConfig,
    workers: Workers,
    *,
    vocabulary: Optional[Vocabulary] = None,
) -> Prepared:
    """Encodes a corpus that is given, and makes a model for it.

    Args:
        corpus: whatever `config.data` says of a corpus and its split.
        vocabulary: without it one is made as `config.data` says.

    Raises:
        UserError: settings that are impossible.
    """
    checkpoint = checkpoint_for(config)
    vocabulary = vocabulary or vocabulary_for(config, corpus, checkpoint)
    encoded = {part: encode_part(config, getattr(corpus, part), vocabulary, part) for part in PARTS}
    model = model_for(config, vocabulary, device(workers))
    start_from_pretrained(model, config, vocabulary, checkpoint)
    return Prepared(
        corpus=corpus,
        vocabulary=vocabulary,
        model=model,
        train=encoded["train"],
        validation=encoded["validation"],
        test=encoded["test"],
        users=training_users(config, corpus),
    )


def without_model_selection(config: ExperimentConfig) -> ExperimentConfig:
    """The settings that `train_prepared` goes by: nothing is validated, the last epoch counts."""
    training = replace(config.training, checkpoint="last", early_stop_patience=0)
    return replace(config, training=training)


def train_prepared(
    prepared: Prepared,
    config: ExperimentConfig,
    workers: Workers,
    run: RunDirectory,
    progress: Callable[..., Iterable[Any]],
) -> None:
    """Trains the model as `edp-mx train` does, with the configured mechanism, to the last epoch.

    Args:
        config: its `training.checkpoint` and early stopping have no say: nothing is validated.
        run: a folder that exists; a ledger may be written there.
        progress: `progress(iterable, description, total)`: a bar, or the iterable itself.

    Raises:
        UserError: settings that are impossible.
    """
    config = without_model_selection(config)
    parts = set_up_on(prepared, config, workers, run, lambda _: None)
    for _ in parts.epochs(config.training, workers, progress, lambda _: None):
        pass
