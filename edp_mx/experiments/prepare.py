"""From a configuration to what is trained: corpus, vocabulary, model."""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Tuple

import mxnet as mx
import numpy as np

from edp_mx.config import ExperimentConfig
from edp_mx.data.corpus import Corpus, load_corpus, public_sample
from edp_mx.data.embeddings import load_embeddings
from edp_mx.data.encoding import EncodedCorpus, encode
from edp_mx.data.splits import PARTS
from edp_mx.data.utterance import Utterance
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.distributed import Workers
from edp_mx.models.intent_slot import IntentSlotModel, build_model

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Prepared:
    """A corpus in its three parts, as text and encoded, and the model that fits it."""

    corpus: Corpus
    vocabulary: Vocabulary
    train: EncodedCorpus
    validation: EncodedCorpus
    test: EncodedCorpus
    model: IntentSlotModel


def prepare(config: ExperimentConfig, workers: Workers, context: mx.Context) -> Prepared:
    """Loads, splits, encodes and builds; the same on every worker, which is checked.

    Raises:
        UserError: bad data, or workers that see different data.
    """
    corpus = load_corpus(config.data)
    workers.agree("the corpus", fingerprint(corpus.train + corpus.validation + corpus.test))
    workers.agree("the split", fingerprint(corpus.train))
    vocabulary, vectors = vocabulary_for(config, corpus)
    workers.agree("the vocabulary", short_hash(vocabulary.to_json()))
    encoded = {
        part: encode(
            getattr(corpus, part),
            vocabulary,
            max_tokens=config.data.max_tokens,
            max_characters=config.data.max_characters,
        )
        for part in PARTS
    }
    model = model_for(config, vocabulary, context, vectors)
    return Prepared(corpus=corpus, vocabulary=vocabulary, model=model, **encoded)


def vocabulary_for(
    config: ExperimentConfig, corpus: Corpus
) -> Tuple[Vocabulary, Optional[np.ndarray]]:
    """The vocabulary, and the pre-trained vectors of its words where there are any.

    Shapes: vectors (words, dimension); words that the file lacks get small random ones.
    """
    data = config.data
    word_sample, label_sample = (
        public_sample(data, part.path) if part.source == "sample" else []
        for part in (data.vocabulary, data.labels)
    )
    vocabulary = Vocabulary.build(
        corpus.train,
        data.vocabulary,
        data.labels,
        embeddings_path=data.embeddings.path,
        word_sample=word_sample,
        label_sample=label_sample,
    )
    if data.embeddings.path is None:
        return vocabulary, None
    found, known = load_embeddings(data.embeddings, vocabulary.words)
    generator = np.random.default_rng(np.random.SeedSequence([config.training.seed, 0xE3B]))
    width = np.sqrt(3.0 / data.embeddings.dimension)  # Ma & Hovy 2016, section 3.1
    shape = (len(vocabulary.words), data.embeddings.dimension)
    vectors = generator.uniform(-width, width, shape).astype(np.float32)
    place = {word: i for i, word in enumerate(vocabulary.words)}
    vectors[[place[word] for word in found]] = known
    logger.info(
        "%d of %d words have vectors in %s", len(found), len(vocabulary.words), data.embeddings.path
    )
    return vocabulary, vectors


def model_for(
    config: ExperimentConfig,
    vocabulary: Vocabulary,
    context: mx.Context,
    vectors: Optional[np.ndarray] = None,
) -> IntentSlotModel:
    """A freshly initialised model of the configured size."""
    return build_model(
        config.model,
        num_words=len(vocabulary.words),
        num_characters=len(vocabulary.characters),
        num_slots=len(vocabulary.slots),
        num_intents=len(vocabulary.intents),
        seed=config.training.seed,
        context=context,
        word_vectors=vectors,
        word_dimension=config.data.embeddings.dimension,
        is_embedding_trainable=config.data.embeddings.is_trainable,
    )


def broadcast_weights(model: IntentSlotModel, workers: Workers) -> None:
    """Gives every worker rank 0's parameters, frozen ones too."""
    parameters = model.collect_params()
    workers.agree("the model's parameters", sorted((n, p.shape) for n, p in parameters.items()))
    for name in sorted(parameters):
        workers.broadcast_array(parameters[name].data(), f"weights.{name}")


def fingerprint(utterances: List[Utterance]) -> str:
    """A short hash of ids, text and labels."""
    return short_hash([(u.id, u.tokens, u.slots, u.intent) for u in utterances])


def short_hash(value: Any) -> str:
    """Sixteen hexadecimal digits of a plain value."""
    return hashlib.sha256(repr(value).encode()).hexdigest()[:16]


def layers_report(layers: Any, scales: Any) -> List[Dict[str, Any]]:
    """`layers.json`: each layer with its parameters and its scale α."""
    return [
        {**layer.describe(), "scale": scale}
        for layer, scale in zip(layers, scales or [None] * len(layers))
    ]
