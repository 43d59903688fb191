"""The ancestors of a model: whether any of them has read its corpus, and a sentence on each."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, List, NamedTuple, Optional, Tuple

from edp_mx.config import ExperimentConfig
from edp_mx.data.corpus import Corpus
from edp_mx.data.origin import (
    GONE,
    MERGED,
    ORIGIN,
    UNKNOWN,
    AtHand,
    Origin,
    beside,
    corpora_of,
    read_origin,
)
from edp_mx.models.checkpoints.huggingface import CONFIG
from edp_mx.runs.file_types import Privacy
from edp_mx.runs.run_directory import MODEL, RunDirectory

Line = Tuple[Origin, ...]  # of descent, the nearest first


class Brought(NamedTuple):
    """The ancestry of a model in plain values, so that rank 0 can send it to the other workers.

    Attributes:
        is_own: it starts from a training on its own corpus, or one that may have been, or from word
            vectors of such a training.
        has_own_words: such a training took the words or pieces from its training part.
        said: of each ancestor, what it brings (start, words or word vectors), a sentence, and
            whether it has read this corpus (None: nobody here knows).
    """

    is_own: bool
    has_own_words: bool
    said: Tuple[Tuple[str, str, Optional[bool]], ...]


def brought_along(config: ExperimentConfig, corpus: Corpus) -> Brought:
    """Look at all that a model descends from, near and far, and compare it with its own corpus.

    See `AtHand.is_in` for when two corpora count as the same. A run that is gone counts as one on
    the same corpus. What is known of an ancestor, but cannot be compared, is said.
    """
    vectors, line, apart = _vectors(config), line_of_start(config), _line_of_words(config)
    here = AtHand(config.data, corpus)
    own = {origin: _is_own(origin, here) for origin in (*vectors, *line, *apart)}
    said = tuple(
        (_kind(origin, vectors, line), _say(origin, is_own), is_own)
        for origin, is_own in own.items()
    )
    words = line if config.data.vocabulary.source == "checkpoint" else apart
    taken = next((origin for origin in words if origin.words != "checkpoint"), None)
    has_own_words = taken is not None and taken.words == "train" and bool(own[taken])
    return Brought(any(own[origin] for origin in (*vectors, *line)), has_own_words, said)


def _kind(origin: Origin, vectors: Line, start: Line) -> str:
    """What an ancestor brings."""
    return "word vectors" if origin in vectors else "start" if origin in start else "words"


def origin_of_run(run: RunDirectory, config: ExperimentConfig, corpus: Corpus) -> Line:
    """Return the ancestors of a model that this run trains, the run itself first."""
    words = _line_of_words(config)
    this = Origin(
        name=run.path.resolve().name,
        how=config.privacy.mechanism,
        words="checkpoint" if words else config.data.vocabulary.source,
        corpora=corpora_of(config.data, corpus.train),
    )
    return (this, *_vectors(config), *words, *line_of_start(config))


def line_of_start(config: Any) -> Line:
    """Return the ancestors of a model's start, without word vectors."""
    named = [getattr(config.model, key, None) for key in ("start_from", "checkpoint")]
    return tuple(o for folder in named if folder is not None for o in origin_of(Path(folder)))


def _line_of_words(config: ExperimentConfig) -> Line:
    """The line of a model whose pieces are taken, and nothing else of it; none for a plain list.

    A file beside that of an origin counts as its folder.
    """
    vocabulary = config.data.vocabulary
    folder = Path(str(vocabulary.path))
    if folder.is_file() and (folder.parent / ORIGIN).is_file():
        folder = folder.parent
    if vocabulary.source != "file" or not folder.is_dir():
        return ()
    line = origin_of(folder)
    is_gone = line[0].how == GONE  # which it is not: it is no run, but a tokenizer's folder
    return (Origin(folder.name, UNKNOWN),) if is_gone else line


def origin_of(folder: Path) -> Line:
    """Return the line of a run, or of a checkpoint in Hugging Face's layout, itself first.

    Edge cases: without the file of its origin, a checkpoint is `UNKNOWN`, and all else `GONE`.
    """
    folder = (folder / MODEL if (folder / MODEL / CONFIG).is_file() else folder).resolve()
    run, line = RunDirectory(folder), read_origin(folder / ORIGIN)
    if line and run.weights.exists():  # ε was not known when the run began
        epsilon = run.load(Privacy).holds.epsilon if run.has("privacy") else None
        return (replace(line[0], epsilon=epsilon), *line[1:])
    if line:
        return line
    if (folder / CONFIG).is_file() and not run.config.is_file():
        return (Origin(_name_of(folder), UNKNOWN),)
    return (Origin(folder.name, GONE),)


def _vectors(config: ExperimentConfig) -> Line:
    """The word vectors that a model starts from; they are no step in the line of its words."""
    path = config.data.embeddings.path
    if path is None:
        return ()
    line = read_origin(beside(path)) or (Origin(Path(path).name, UNKNOWN),)
    return tuple(replace(each, words="checkpoint") for each in line)


def _name_of(folder: Path) -> str:
    """The name of a checkpoint; "model", in a pre-training, says nothing without the run's."""
    return f"{folder.parent.name}/{MODEL}" if folder.name == MODEL else folder.name


def _is_own(origin: Origin, here: AtHand) -> Optional[bool]:
    """Whether the corpus was read there; None where nobody knows."""
    if origin.how == GONE:
        return True
    found: List[Optional[bool]] = [here.is_in(read) for read in origin.corpora]
    if any(found):
        return True
    return None if None in found or not found else False


def _say(origin: Origin, is_own: Optional[bool]) -> str:
    """A sentence about an ancestor."""
    name = origin.name
    if origin.how == UNKNOWN:
        named = f"{name} ({origin.source})" if origin.source else name
        return f"{named}, whose training text nobody here knows"
    if origin.how == GONE:
        return f"{name}, which is gone, and may have been trained on this corpus"
    is_merged = origin.how == MERGED
    merged = origin.corpora if is_merged else origin.corpora[1:] or origin.corpora
    corpora = ", ".join(dict.fromkeys(read.corpus for read in merged))
    how = "without privacy"
    if origin.how != "none" and not is_merged:
        epsilon = "infinity" if origin.epsilon is None else f"{origin.epsilon:.3g}"
        how = f"by {origin.how} with an epsilon of {epsilon}"
    trained = f"{name}, trained on {corpora} {how}"
    if is_own is None:
        return f"{trained}: nobody here can tell whether that holds this corpus"
    which = "which is this corpus, or may be" if is_own else "declared other than this corpus"
    return f"{trained}, {which}"
