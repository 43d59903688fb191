"""The vocabulary and the model that a configuration asks for, and what the model starts from."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Optional, Sequence

import mxnet as mx
import numpy as np

from edp_mx.config import ExperimentConfig
from edp_mx.data.config import DataConfig
from edp_mx.data.corpus import Corpus
from edp_mx.data.counting import lines_of
from edp_mx.data.embeddings import load_embeddings
from edp_mx.data.encoding import EncodedCorpus, encode
from edp_mx.data.sources import public_sample
from edp_mx.data.splits import PARTS
from edp_mx.data.tokenizer import Tokenizer, load_tokenizer
from edp_mx.data.utterance import Utterance
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.data.wordpiece import WordPiece, learn_pieces
from edp_mx.errors import UserError
from edp_mx.models.bert import BERTConfig, BERTEncoder
from edp_mx.models.clc import CLCEncoder
from edp_mx.models.huggingface import Checkpoint, load_bert, read_checkpoint, require_sizes
from edp_mx.models.intent_slot import IntentSlotModel, build_model

logger = logging.getLogger(__name__)

NUM_PIECES = 30_522  # of BERT's own vocabulary


@dataclass(frozen=True, eq=False)
class Start:
    """What a model starts from beside drawn values.

    Attributes:
        word_vectors: of a CLC's words, (words, dimension).
        checkpoint: of a BERT.
    """

    word_vectors: Optional[np.ndarray] = None
    checkpoint: Optional[Checkpoint] = None


def start_of(config: ExperimentConfig) -> Start:
    """Reads the checkpoint that a BERT starts from; nothing for all other models.

    Raises:
        UserError: the checkpoint is broken or of another size.
    """
    if not isinstance(config.model, BERTConfig) or config.model.checkpoint is None:
        return Start()
    checkpoint = read_checkpoint(config.model.checkpoint)
    require_sizes(config.model, checkpoint)
    return Start(checkpoint=checkpoint)


def vocabulary_for(config: ExperimentConfig, corpus: Corpus, start: Start) -> Vocabulary:
    """Words or word pieces, and labels, from where the configuration takes them.

    Raises:
        UserError: a source is missing, broken, or does not go with the model.
    """
    data = config.data
    word_sample, label_sample = (
        public_sample(data, part.path) if part.source == "sample" else []
        for part in (data.vocabulary, data.labels)
    )
    if isinstance(config.model, BERTConfig):
        return Vocabulary.of_pieces(
            _tokenizer(data, word_sample or corpus.train, start.checkpoint),
            corpus.train,
            word_source=data.vocabulary.source,
            labels=data.labels,
            label_sample=label_sample,
        )
    return Vocabulary.build(
        corpus.train,
        data.vocabulary,
        data.labels,
        embeddings_path=data.embeddings.path,
        word_sample=word_sample,
        label_sample=label_sample,
    )


def _tokenizer(
    data: DataConfig, seen: Sequence[Utterance], checkpoint: Optional[Checkpoint]
) -> Tokenizer:
    """The pieces of a BERT; those of its checkpoint if it starts from one.

    Args:
        seen: the utterances to learn from, with the sources "train" and "sample".
    """
    vocabulary = data.vocabulary
    if (checkpoint is None) == (vocabulary.source == "checkpoint"):
        raise UserError(
            "data.vocabulary.source: checkpoint needs the folder in model.checkpoint"
            if checkpoint is None
            else "a BERT that starts from model.checkpoint has its word pieces: set "
            "data.vocabulary.source: checkpoint"
        )
    if data.embeddings.path is not None or vocabulary.source == "embeddings":
        raise UserError("data.embeddings: word vectors go with model.family: clc only")
    if checkpoint is not None:
        return checkpoint.tokenizer
    if vocabulary.source == "file":
        assert vocabulary.path is not None  # held by the config
        if Path(vocabulary.path).is_dir():
            return load_tokenizer(Path(vocabulary.path))
        return WordPiece.from_file(vocabulary.path, lowercase=vocabulary.lowercase)
    pieces = learn_pieces(
        lines_of(seen),
        size=vocabulary.max_words or NUM_PIECES,
        lowercase=vocabulary.lowercase,
        min_count=vocabulary.min_count,
    )
    return WordPiece(pieces, vocabulary.lowercase)


def word_vectors_for(config: ExperimentConfig, vocabulary: Vocabulary) -> Optional[np.ndarray]:
    """The pre-trained vectors of a CLC's words, where there are any.

    Shapes: (words, dimension); words that the file lacks get small random ones.
    """
    embeddings = config.data.embeddings
    if embeddings.path is None:
        return None
    found, known = load_embeddings(embeddings, vocabulary.words)
    generator = np.random.default_rng(np.random.SeedSequence([config.training.seed, 0xE3B]))
    width = np.sqrt(3.0 / embeddings.dimension)  # Ma & Hovy 2016, section 3.1
    shape = (len(vocabulary.words), embeddings.dimension)
    vectors = generator.uniform(-width, width, shape).astype(np.float32)
    place = {word: i for i, word in enumerate(vocabulary.words)}
    vectors[[place[word] for word in found]] = known
    logger.info(
        "%d of %d words have vectors in %s", len(found), len(vocabulary.words), embeddings.path
    )
    return vectors


def encode_parts(
    config: ExperimentConfig, corpus: Corpus, vocabulary: Vocabulary
) -> Dict[str, EncodedCorpus]:
    """The training, validation and test part, each as `encode_part` has it."""
    encoded: Dict[str, EncodedCorpus] = {}
    for part in PARTS:
        like = encoded.get(PARTS[0])
        encoded[part] = encode_part(config, getattr(corpus, part), vocabulary, part, like=like)
    return encoded


def encode_part(
    config: ExperimentConfig,
    utterances: Sequence[Utterance],
    vocabulary: Vocabulary,
    part: str,
    *,
    like: Optional[EncodedCorpus] = None,
) -> EncodedCorpus:
    """Encodes with the configured maxima; warns of what they cut off.

    Args:
        part: what the warning calls the utterances.
        like: another part, encoded with the same settings; see `encode`.
    """
    encoded = encode(
        utterances,
        vocabulary,
        max_tokens=config.data.max_tokens,
        max_characters=config.data.max_characters,
        max_pieces=config.data.max_pieces,
        like=like,
    )
    if encoded.num_cut:
        logger.warning(
            "%d of %d %s utterances were longer than data.max_tokens or data.max_pieces; their "
            "ends were cut off, and slots there count as missed",
            encoded.num_cut,
            len(encoded),
            part,
        )
    return encoded


def model_for(
    config: ExperimentConfig,
    vocabulary: Vocabulary,
    context: mx.Context,
    start: Start = Start(),  # noqa: B008 (frozen)
) -> IntentSlotModel:
    """A model of the configured family and size, ready to train.

    Raises:
        UserError: what it is to start from does not fit it.
    """
    encoder = _encoder(config, vocabulary)
    model = build_model(
        encoder,
        num_slots=len(vocabulary.slots),
        num_intents=len(vocabulary.intents),
        seed=config.training.seed,
        context=context,
    )
    if start.word_vectors is not None:
        encoder.set_word_vectors(start.word_vectors)
    if start.checkpoint is not None:
        load_bert(encoder.bert, start.checkpoint)
    return model


def _encoder(config: ExperimentConfig, vocabulary: Vocabulary) -> Any:
    """The encoder alone, without values."""
    prefix = f"{config.model.family}_"
    if isinstance(config.model, BERTConfig):
        assert vocabulary.tokenizer is not None  # made by `vocabulary_for` of the same settings
        if config.data.max_pieces > config.model.max_positions:
            raise UserError(
                f"data.max_pieces is {config.data.max_pieces}, but the model has only "
                f"{config.model.max_positions} positions (model.max_positions); lower it"
            )
        return BERTEncoder(config.model, num_pieces=len(vocabulary.tokenizer), prefix=prefix)
    embeddings = config.data.embeddings
    return CLCEncoder(
        config.model,
        num_words=len(vocabulary.words),
        num_characters=len(vocabulary.characters),
        word_dimension=embeddings.dimension,
        is_embedding_trainable=embeddings.is_trainable,
        prefix=prefix,
    )
