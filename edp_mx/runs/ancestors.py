"""The runs that a model descends from: whether they have brought it its own corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Iterator, Optional, Set, Tuple

from edp_mx.config import ExperimentConfig, load_config
from edp_mx.data.config import DataConfig
from edp_mx.data.corpus import Corpus
from edp_mx.data.fingerprint import fingerprint, is_same
from edp_mx.data.sources import find_corpus, is_made
from edp_mx.errors import UserError
from edp_mx.models.checkpoints.huggingface import CONFIG
from edp_mx.runs.run_directory import RunDirectory


def starts_from_own(config: ExperimentConfig, corpus: Corpus) -> bool:
    """Return whether a model starts from a run that was trained on its own corpus.

    That run may itself have started from one that was, and so on. Two runs have the same corpus if
    they have the same training part, or corpora from the same place, however these were split; if
    their training parts cannot be compared, the same name is enough. A run that is gone counts as
    one on the same corpus. Whether a corpus that was merged, copied or changed holds the same
    utterances cannot be seen.
    """
    return any(_is_own(run, theirs, config, corpus) for run, theirs in _ancestors(config))


def has_own_words(config: ExperimentConfig, corpus: Corpus) -> bool:
    """Return whether such a run has taken the words or pieces of the model from its training part.

    With `data.vocabulary.source: checkpoint`, they are those of the last run that had another one.
    """
    if config.data.vocabulary.source != "checkpoint":
        return False
    for run, theirs in _ancestors(config):
        source = "train" if theirs is None else theirs.data.vocabulary.source
        if source != "checkpoint":
            return source == "train" and _is_own(run, theirs, config, corpus)
    return False


def _ancestors(
    config: Optional[ExperimentConfig],
) -> Iterator[Tuple[RunDirectory, Optional[ExperimentConfig]]]:
    """Yield the run that a model starts from, the one that this started from, and so on.

    Each comes with its settings, None if they are gone or cannot be read, which ends the line. So
    does a checkpoint in Hugging Face's layout, which is none of our runs.
    """
    seen: Set[Path] = set()
    while config is not None and config.model.start_from is not None:
        folder = Path(config.model.start_from).resolve()
        run = RunDirectory(folder)
        if folder in seen or ((folder / CONFIG).is_file() and not run.config.is_file()):
            return
        seen.add(folder)
        try:
            config = load_config(run.config)
        except (UserError, OSError):
            config = None
        yield run, config


def _is_own(
    run: RunDirectory,
    theirs: Optional[ExperimentConfig],
    config: ExperimentConfig,
    corpus: Corpus,
) -> bool:
    if theirs is None:
        return True
    one, other = theirs.data, config.data
    if is_made(one) and is_made(other):
        return (one.corpus, one.split_seed) == (other.corpus, other.split_seed)
    if _is_same_place(_place_of(one), _place_of(other)):
        return True
    is_same_part = _has_same_part(run, corpus)
    return one.corpus == other.corpus if is_same_part is None else is_same_part


def _place_of(data: DataConfig) -> Path:
    """Return where a corpus lies, absolute; its name if it is not there."""
    if data.path is not None:
        return Path(data.path).resolve()
    try:
        return find_corpus(data).resolve()
    except UserError:
        return Path(data.corpus)


def _is_same_place(one: Path, other: Path) -> bool:
    """Return whether two files or folders are the same, or one of them lies in the other."""
    return one == other or one in other.parents or other in one.parents


def _has_same_part(run: RunDirectory, corpus: Corpus) -> Optional[bool]:
    """Return whether a run was trained on the training part; None if that cannot be told."""
    parts = run.read("environment").get("fingerprints") if run.has("environment") else None
    recorded = (parts or {}).get("train")
    return None if recorded is None else is_same(recorded, fingerprint(corpus.train))
