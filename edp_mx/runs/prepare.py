"""From a configuration to what is trained: corpus, vocabulary, model."""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass
from typing import Any, Optional

import numpy as np

from edp_mx.config import ExperimentConfig
from edp_mx.data.corpus import Corpus, load_corpus
from edp_mx.data.encoding import EncodedCorpus
from edp_mx.data.fingerprint import fingerprint
from edp_mx.data.splits import users_on_two_sides
from edp_mx.data.users import users_of
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.models.intent_slot import IntentSlotModel
from edp_mx.models.registry import family_of
from edp_mx.runs.build import encode_parts, model_for, start_from_pretrained, vocabulary_for
from edp_mx.runtime.distributed import Workers, device
from edp_mx.runtime.progress import Heartbeat, Progress, no_heartbeat, no_progress

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Prepared:
    """A corpus in its three parts, as text and encoded, and the model that fits it.

    Where users are the unit of privacy, `users` (U,) says who said each training utterance.
    """

    corpus: Corpus
    vocabulary: Vocabulary
    train: EncodedCorpus
    validation: EncodedCorpus
    test: EncodedCorpus
    model: IntentSlotModel
    users: Optional[np.ndarray] = None


def prepare(
    config: ExperimentConfig,
    workers: Workers,
    heartbeat: Heartbeat = no_heartbeat,
    progress: Progress = no_progress,
) -> Prepared:
    """Load the corpus, split and encode it, and build the model; the same on every worker.

    Workers that see different data are refused. The progress is put around the utterances of a
    large corpus that is read for the first time.
    """
    heartbeat("preparing the data")
    corpus = load_corpus(config.data, heartbeat=heartbeat, progress=progress)
    workers.agree("the corpus", corpus.fingerprint())
    workers.agree("the split", fingerprint(corpus.train))
    return prepare_corpus(corpus, config, workers)


def prepare_corpus(
    corpus: Corpus,
    config: ExperimentConfig,
    workers: Workers,
    *,
    vocabulary: Optional[Vocabulary] = None,
) -> Prepared:
    """Encode a corpus and build a model for it, and the vocabulary unless one is given.

    The corpus takes the place of what `config.data` says of a corpus and its split.
    """
    checkpoint = family_of(config.model).read_checkpoint(config.model)
    vocabulary = vocabulary or vocabulary_for(config, corpus, checkpoint)
    workers.agree("the vocabulary", short_hash(vocabulary.to_json()))
    encoded = encode_parts(config, corpus, vocabulary)
    model = model_for(config, vocabulary, device(workers))
    start_from_pretrained(model, config, vocabulary, checkpoint)
    users = _training_users(config, corpus)
    return Prepared(corpus=corpus, vocabulary=vocabulary, model=model, users=users, **encoded)


def _training_users(config: ExperimentConfig, corpus: Corpus) -> Optional[np.ndarray]:
    if config.privacy.unit != "user":
        return None
    both = users_on_two_sides(corpus.split, users_of(corpus.utterances))
    if both:
        logger.warning(
            "%d users of %s are in more than one part (data.split: own), so that validation and "
            "test contain users of the training part; data.split: paper keeps them apart",
            both,
            corpus.name,
        )
    return users_of(corpus.train)


def broadcast_weights(model: IntentSlotModel, workers: Workers) -> None:
    """Give every worker rank 0's parameters, frozen ones too."""
    parameters = model.collect_params()
    workers.agree("the model's parameters", sorted((n, p.shape) for n, p in parameters.items()))
    for name in sorted(parameters):
        workers.broadcast_array(parameters[name].data(), f"weights.{name}")


def short_hash(value: Any) -> str:
    """Return a hash of a plain value, sixteen hexadecimal digits."""
    return hashlib.sha256(repr(value).encode()).hexdigest()[:16]
