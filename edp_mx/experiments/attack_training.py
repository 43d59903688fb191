"""Trains a model only to be asked about its training part: shadows, and models with canaries."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Callable, Iterable, Optional

from edp_mx.config import ExperimentConfig
from edp_mx.data.corpus import Corpus
from edp_mx.data.splits import PARTS
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.distributed import Workers, device
from edp_mx.experiments.build import (
    encode_part,
    model_for,
    start_of,
    vocabulary_for,
    word_vectors_for,
)
from edp_mx.experiments.prepare import Prepared
from edp_mx.experiments.run_directory import RunDirectory
from edp_mx.experiments.set_up import set_up_on
from edp_mx.training.loop import epochs


def train_on(
    corpus: Corpus,
    config: ExperimentConfig,
    workers: Workers,
    run: RunDirectory,
    progress: Callable[..., Iterable[Any]],
    *,
    vocabulary: Optional[Vocabulary] = None,
) -> Prepared:
    """Trains as `edp-mx train` does, with the configured mechanism, on a corpus that is given.

    Args:
        corpus: whatever `config.data` says of a corpus and its split.
        config: its `training.checkpoint` and early stopping have no say: nothing is validated.
        run: a folder that exists; a ledger may be written there.
        progress: `progress(iterable, description, total)`: a bar, or the iterable itself.
        vocabulary: that of another model; without it one is made as `config.data` says.

    Returns:
        The corpus, encoded, with the model after the last epoch.

    Raises:
        UserError: settings that are impossible.
    """
    config = replace(
        config, training=replace(config.training, checkpoint="last", early_stop_patience=0)
    )
    start = start_of(config)
    vocabulary = vocabulary or vocabulary_for(config, corpus, start)
    start = replace(start, word_vectors=word_vectors_for(config, vocabulary))
    encoded = {part: encode_part(config, getattr(corpus, part), vocabulary, part) for part in PARTS}
    prepared = Prepared(
        corpus=corpus,
        vocabulary=vocabulary,
        model=model_for(config, vocabulary, device(workers), start),
        **encoded,
    )
    parts = set_up_on(prepared, config, workers, run, lambda _: None)
    training = config.training
    for _ in epochs(
        prepared.model,
        parts.trainer,
        prepared.train,
        parts.shard,
        num_epochs=training.epochs,
        schedule=training.schedule,
        seed=training.seed,
        workers=workers,
        permit=parts.spending.permit,
        on_step=lambda _: None,
        wrap=lambda batches, epoch, steps: progress(
            batches, f"epoch {epoch + 1}/{training.epochs}", steps
        ),
    ):
        pass
    return prepared
