"""From a configuration to what is trained: corpus, vocabulary, model."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any, Callable, Dict, List

import mxnet as mx

from edp_mx.config import ExperimentConfig
from edp_mx.data.corpus import Corpus, load_corpus
from edp_mx.data.encoding import EncodedCorpus
from edp_mx.data.fingerprint import fingerprint
from edp_mx.data.store import Progress, plainly
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.distributed import Workers
from edp_mx.experiments.build import (
    encode_parts,
    model_for,
    start_of,
    vocabulary_for,
    word_vectors_for,
)
from edp_mx.models.intent_slot import IntentSlotModel


@dataclass(frozen=True)
class Prepared:
    """A corpus in its three parts, as text and encoded, and the model that fits it."""

    corpus: Corpus
    vocabulary: Vocabulary
    train: EncodedCorpus
    validation: EncodedCorpus
    test: EncodedCorpus
    model: IntentSlotModel


def prepare(
    config: ExperimentConfig,
    workers: Workers,
    context: mx.Context,
    alive: Callable[[str], None] = lambda _: None,
    progress: Progress = plainly,
) -> Prepared:
    """Loads, splits, encodes and builds; the same on every worker, which is checked.

    Args:
        alive: told what goes on: the watchdog listens.
        progress: put around the utterances of a large corpus that is read for the first time.

    Raises:
        UserError: bad data, or workers that see different data.
    """
    corpus = load_corpus(config.data, alive=alive, progress=progress)
    workers.agree("the corpus", corpus.fingerprint())
    workers.agree("the split", fingerprint(corpus.train))
    start = start_of(config)
    vocabulary = vocabulary_for(config, corpus, start)
    workers.agree("the vocabulary", short_hash(vocabulary.to_json()))
    start = replace(start, word_vectors=word_vectors_for(config, vocabulary))
    encoded = encode_parts(config, corpus, vocabulary)
    model = model_for(config, vocabulary, context, start)
    return Prepared(corpus=corpus, vocabulary=vocabulary, model=model, **encoded)


def broadcast_weights(model: IntentSlotModel, workers: Workers) -> None:
    """Gives every worker rank 0's parameters, frozen ones too."""
    parameters = model.collect_params()
    workers.agree("the model's parameters", sorted((n, p.shape) for n, p in parameters.items()))
    for name in sorted(parameters):
        workers.broadcast_array(parameters[name].data(), f"weights.{name}")


def short_hash(value: Any) -> str:
    """Sixteen hexadecimal digits of a plain value."""
    return hashlib.sha256(repr(value).encode()).hexdigest()[:16]


def layers_report(layers: Any, scales: Any) -> List[Dict[str, Any]]:
    """`layers.json`: each layer with its parameters and its scale α."""
    return [
        {**layer.describe(), "scale": scale}
        for layer, scale in zip(layers, scales or [None] * len(layers))
    ]
