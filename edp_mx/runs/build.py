"""The vocabulary, the encoded corpus and the model that a configuration asks for."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any, Dict, Iterable, List, Optional, Sequence

import mxnet as mx
import numpy as np

from edp_mx.config import ExperimentConfig
from edp_mx.data.columnar_corpus import lines_of
from edp_mx.data.config import DataConfig
from edp_mx.data.corpus import Corpus
from edp_mx.data.embeddings import load_embeddings
from edp_mx.data.encoding import EncodedCorpus, encode
from edp_mx.data.origin import AtHand
from edp_mx.data.sources import public_sample, refuse_private_lists
from edp_mx.data.splits import PARTS
from edp_mx.data.tokenizer import Tokenizer, load_tokenizer
from edp_mx.data.utterance import Utterance
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.data.wordpiece import WordPiece
from edp_mx.data.wordpiece_learning import learn_pieces
from edp_mx.errors import UserError
from edp_mx.models.checkpoints.huggingface import CONFIG
from edp_mx.models.frozen import freeze
from edp_mx.models.registry import FAMILIES, read_start
from edp_mx.runs.start_from import RunStart
from edp_mx.runtime.npz import Arrays
from edp_mx.tasks.model import TaskModel, draw_values
from edp_mx.tasks.registry import TASKS

logger = logging.getLogger(__name__)

NUM_PIECES = 30_522  # of BERT's own vocabulary


def start_for(config: ExperimentConfig) -> Optional[Any]:
    """Read the weights that the model starts from; None where it starts from none."""
    start = config.model.start_from
    if start is not None and not (Path(start) / CONFIG).is_file():
        reads_words = not FAMILIES[config.model.family].has_pieces
        width = config.data.embeddings.dimension if reads_words else None
        return RunStart.read(Path(start), config.model, width=width)
    return read_start(config.model)


def vocabulary_for(
    config: ExperimentConfig, corpus: Corpus, checkpoint: Optional[Any] = None
) -> Vocabulary:
    """Build words or pieces, and labels, from where the configuration takes them."""
    data = config.data
    refuse_private_lists(data)
    word_sample, label_sample = (
        _sample_for(key, getattr(data, key), data, corpus) for key in ("vocabulary", "labels")
    )
    if FAMILIES[config.model.family].has_pieces:
        seen = corpus.train if data.vocabulary.source == "train" else word_sample
        vocabulary = Vocabulary.of_pieces(
            _tokenizer(config, seen, checkpoint),
            corpus.train,
            word_source=data.vocabulary.source,
            labels=data.labels,
            label_sample=label_sample,
            template=config.model.written_around,
        )
    else:
        vocabulary = Vocabulary.build(
            corpus.train,
            data.vocabulary,
            data.labels,
            embeddings_path=data.embeddings.path,
            word_sample=word_sample,
            label_sample=label_sample,
            start=checkpoint.vocabulary if isinstance(checkpoint, RunStart) else None,
        )
    task = TASKS[config.task]
    if task.has_labels and not task.has_slots and len(vocabulary.intents) < 2:
        raise UserError(
            f"task: {task.name} has nothing to learn, since all of {corpus.name} has the label "
            f"{vocabulary.intents[0]!r}: let data.columns.intent name the labels, or set task"
        )
    return vocabulary


def _sample_for(key: str, part: Any, data: DataConfig, corpus: Corpus) -> List[Utterance]:
    """The utterances that words or labels are taken from; none where these come from elsewhere."""
    if part.source != "sample":
        return []
    sample = public_sample(data, part.path)
    if not sample:
        raise UserError(f"data.{key}.path: {part.path} holds no utterances; name another file")
    if part.path is not None and not AtHand(data, corpus).is_public(sample, part.path):
        raise UserError(
            f"data.{key}.path: {part.path} holds utterances of the corpus itself, which is "
            "private; name public utterances from elsewhere, give a public list with source: file, "
            "or use source: train, which the report states"
        )
    return sample


def _tokenizer(
    config: ExperimentConfig, seen: Sequence[Utterance], checkpoint: Optional[Any]
) -> Tokenizer:
    """Return the pieces of the checkpoint or a file, or learn them from the utterances seen."""
    data, vocabulary = config.data, config.data.vocabulary
    if (checkpoint is None) == (vocabulary.source == "checkpoint"):
        raise UserError(
            "data.vocabulary.source: checkpoint needs a folder in model.start_from or "
            "model.checkpoint"
            if checkpoint is None
            else "a model that starts from other weights has their word pieces: set "
            "data.vocabulary.source: checkpoint"
        )
    if data.embeddings.path is not None or vocabulary.source == "embeddings":
        raise UserError(
            "data.embeddings: word vectors need a model that reads words, such as model.family: clc"
        )
    if checkpoint is not None:
        return checkpoint.tokenizer
    lowercase = vocabulary.lowercase
    if vocabulary.source == "file" and vocabulary.path is not None:
        path = Path(vocabulary.path)
        if path.is_dir():
            return load_tokenizer(path)
        return WordPiece.from_file(str(path), lowercase=lowercase)
    wanted = {"size": vocabulary.max_words or NUM_PIECES, "min_count": vocabulary.min_count}
    logger.info("learning at most %d pieces", wanted["size"])
    learn = FAMILIES[config.model.family].learn_tokenizer
    if learn is not None:
        return learn(lines_of(seen), **wanted)
    return WordPiece(learn_pieces(lines_of(seen), lowercase=lowercase, **wanted), lowercase)


def start_from_pretrained(
    model: TaskModel, config: ExperimentConfig, vocabulary: Vocabulary, checkpoint: Optional[Any]
) -> None:
    """Load word vectors, checkpoint and label words into the model, where there are any."""
    if config.data.embeddings.path is not None:
        model.encoder.set_word_vectors(_word_vectors(config, vocabulary))
    labels: Iterable[int] = range(len(vocabulary.intents))
    if isinstance(checkpoint, RunStart):
        labels = checkpoint.load_into(
            model, vocabulary, config.model.intents, by_names=config.model.heads == "names"
        )
    elif checkpoint is not None:
        load = FAMILIES[config.model.family].load_checkpoint
        assert load is not None  # it has read the checkpoint
        load(model.encoder, checkpoint)
        if model.tensors():
            _load_heads(model, checkpoint.tensors, config)
    if model.label_head is not None:
        model.encoder.start_label_head(
            model.label_head, vocabulary, labels=labels, checkpoint=checkpoint
        )


def _load_heads(model: TaskModel, tensors: Arrays, config: ExperimentConfig) -> None:
    """Set the heads that a checkpoint has a place for; heads that it lacks stay as drawn."""
    heads = model.tensors()
    absent = heads.keys() - tensors.keys()
    if absent:
        start = config.model.start_from or getattr(config.model, "checkpoint", None)
        logger.warning("%s lacks %s, which start from drawn values", start, ", ".join(absent))
        return
    for name, parameter in heads.items():
        parameter.set_data(mx.nd.array(tensors[name], dtype="float32"))


def _word_vectors(config: ExperimentConfig, vocabulary: Vocabulary) -> np.ndarray:
    """Return the file's vectors, and small random ones for other words: (words, dimension)."""
    embeddings = config.data.embeddings
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
    """Encode the training, validation and test part by `encode_part`."""
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
    most_continued: Optional[int] = None,
) -> EncodedCorpus:
    """Encode with the configured maxima, and warn of utterances of the `part` that they cut off.

    Args:
        most_continued: of texts that will be continued, how many pieces leave room for that.
    """
    is_continued, max_pieces = most_continued is not None, config.data.max_pieces
    encoded = encode(
        utterances,
        vocabulary,
        max_tokens=config.data.max_tokens,
        max_characters=config.data.max_characters,
        max_pieces=min(max_pieces, most_continued or max_pieces),
        like=like,
        is_continued=is_continued,
    )
    if encoded.num_cut:
        logger.warning(
            "%d of %d %s utterances are longer than data.max_tokens or data.max_pieces: their "
            "ends are cut off%s",
            encoded.num_cut,
            len(encoded),
            part,
            ", and slots there count as missed" if TASKS[config.task].has_slots else "",
        )
    if encoded.num_begun_later:
        logger.warning(
            "%d of %d %s utterances have a prompt, or a text to continue, that is too long for "
            "data.max_tokens or data.max_pieces%s: their beginnings are cut off",
            encoded.num_begun_later,
            len(encoded),
            part,
            ", or for a reply behind it" if is_continued else "",
        )
    if encoded.num_without_prompt:
        logger.warning(
            "%d of %d %s utterances have a reply that leaves no room for a word of its prompt: "
            "raise data.max_tokens or data.max_pieces, or shorten the replies",
            encoded.num_without_prompt,
            len(encoded),
            part,
        )
    return encoded


def model_without_values(config: ExperimentConfig, vocabulary: Vocabulary) -> TaskModel:
    """Build a model of the configured family and size."""
    encoder = FAMILIES[config.model.family].build(config.model, config.data, vocabulary)
    freeze(encoder, config.model)
    return TASKS[config.task].build(encoder, vocabulary, config.model)


def model_for(config: ExperimentConfig, vocabulary: Vocabulary, context: mx.Context) -> TaskModel:
    """Build a model of the configured family and size, with drawn values."""
    model = model_without_values(config, vocabulary)
    draw_values(model, seed=config.training.seed, context=context)
    return model
