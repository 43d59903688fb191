"""From a configuration to its corpus, vocabulary and model."""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Optional, Sequence

import numpy as np

from edp_mx.config import ExperimentConfig
from edp_mx.data.corpus import Corpus, load_corpus
from edp_mx.data.encoding import EncodedCorpus, encode
from edp_mx.data.fingerprint import fingerprint
from edp_mx.data.splits import PARTS, users_on_two_sides
from edp_mx.data.users import users_of
from edp_mx.data.utterance import Utterance
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.dp.accounting.units import UNITS
from edp_mx.models.encoder import FrozenPart
from edp_mx.models.frozen import frozen_part
from edp_mx.runs.build import (
    encode_parts,
    model_for,
    start_for,
    start_from_pretrained,
    vocabulary_for,
)
from edp_mx.runs.frozen_states import KnownStates, with_states
from edp_mx.runtime.distributed import Workers, device
from edp_mx.runtime.progress import Heartbeat, Progress, no_heartbeat, no_progress
from edp_mx.tasks.model import TaskModel

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Prepared:
    """A corpus in its three parts, as text and encoded, and the model that fits it.

    Where users are the unit of privacy, `users` (U,) has the user of each training utterance.
    `frozen` has the layers below the model, whose outputs the parts hold: see `above_frozen`, which
    looks them up in `known`.
    """

    corpus: Corpus
    vocabulary: Vocabulary
    train: EncodedCorpus
    validation: EncodedCorpus
    test: EncodedCorpus
    model: TaskModel
    users: Optional[np.ndarray] = None
    frozen: Optional[FrozenPart] = None
    known: Optional[KnownStates] = None

    def encode(self, utterances: Sequence[Utterance]) -> EncodedCorpus:
        """Encode other utterances for the model."""
        return self.stored(encode(utterances, self.vocabulary))

    def stored(self, encoded: EncodedCorpus) -> EncodedCorpus:
        """Return encoded utterances with their states, where the model reads these."""
        if self.frozen is None:
            return encoded
        return with_states(encoded, self.frozen, known=self.known)

    def above_frozen(
        self, folder: Path, heartbeat: Heartbeat = no_heartbeat, progress: Progress = no_progress
    ) -> Prepared:
        """Return the part of the model above its frozen layers, and what it reads of the corpus.

        The outputs of the frozen layers are computed here, once: they are the same at each step,
        since nothing there is trained and there is no dropout. Each worker stores its own.

        Args:
            folder: of the run, whose disk has room for the outputs.

        Returns:
            Itself where no layer at the bottom is frozen. Parameters are shared either way.
        """
        frozen = None
        if self.model.reads_stored_states:
            frozen = frozen_part(self.model.encoder, reads_tokens=self.model.reads_tokens)
        if frozen is None:
            return self
        if self.known is not None:
            self.known.keep_to(self.model.encoder)
        model = self.model.upon(frozen.rest)
        model.hybridize(static_alloc=True)
        train, validation, test = (
            with_states(
                getattr(self, part),
                frozen,
                folder=folder,
                heartbeat=heartbeat,
                progress=progress,
                part=part,
                known=self.known,
            )
            for part in PARTS
        )
        logger.info("the outputs of the frozen layers were computed once and stored")
        return replace(
            self, model=model, train=train, validation=validation, test=test, frozen=frozen
        )


def prepare(
    config: ExperimentConfig, workers: Workers, heartbeat: Heartbeat, progress: Progress
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
    known: Optional[KnownStates] = None,
) -> Prepared:
    """Encode a corpus and build a model for it, and the vocabulary unless one is given.

    `known` is handed on from model to model of a process. The corpus replaces the corpus and the
    split of `config.data`.
    """
    checkpoint = start_for(config)
    vocabulary = vocabulary or vocabulary_for(config, corpus, checkpoint)
    workers.agree("the vocabulary", short_hash(vocabulary.to_json()))
    train, validation, test = encode_parts(config, corpus, vocabulary).values()
    model = model_for(config, vocabulary, device(workers))
    start_from_pretrained(model, config, vocabulary, checkpoint)
    users = _training_users(config, corpus)
    return Prepared(corpus, vocabulary, train, validation, test, model, users, known=known)


def _training_users(config: ExperimentConfig, corpus: Corpus) -> Optional[np.ndarray]:
    if not UNITS[config.privacy.unit or ""].is_user:
        return None
    both = users_on_two_sides(corpus.split, users_of(corpus.utterances))
    if both:
        logger.warning(
            "%d users of %s are in more than one part (as its files are divided), so that "
            "validation and test contain users of the training part; data.split: paper keeps "
            "them apart",
            both,
            corpus.name,
        )
    return users_of(corpus.train)


def short_hash(value: Any) -> str:
    """Return a hash of a plain value, sixteen hexadecimal digits."""
    return hashlib.sha256(repr(value).encode()).hexdigest()[:16]
