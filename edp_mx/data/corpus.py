"""A corpus by name: find it, read or make it, split it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Dict, List, Optional, Tuple

import numpy as np

from edp_mx.data.embeddings import EmbeddingsConfig
from edp_mx.data.encoding import MAX_CHARACTERS, MAX_PIECES, MAX_TOKENS
from edp_mx.data.readers import LAYOUTS, read_own_splits, read_utterances
from edp_mx.data.splits import PARTS, Split, join_parts, split_corpus
from edp_mx.data.utterance import Utterance
from edp_mx.data.vocabulary import LabelsConfig, VocabularyConfig
from edp_mx.errors import UserError
from edp_mx.files import path_field

PUBLIC_CORPORA = ("atis", "snips", "nlu_eval")
STANDINS = ("communication", "health", "video")
_STANDIN_SIZE = 20_000
_OWN_VALIDATION = 0.05
_SAMPLE_SEED = 1 << 32  # beyond the seeds of data


@dataclass(frozen=True)
class DataConfig:
    """Which utterances, how split, and how they become numbers.

    Args:
        corpus: atis, snips, nlu_eval; communication, health, video (stand-ins for the paper's
            internal corpora); or a name of one's own, with `path`.
        path: a file or folder; the public corpora are also found by themselves.
        layout: "auto", or the name of a reader.
        split: "paper" (45:5:50 over the whole corpus) or "own" (as the corpus was published).
        split_seed: of the split, of a subset, and of a stand-in.
        size: utterances of a stand-in (default 20,000), or of a random subset of another corpus
            (default all).
        max_tokens, max_characters: what is longer is cut off.
        max_pieces: the same for a BERT's word pieces, with [CLS] and [SEP].
    """

    corpus: str = "atis"
    path: Optional[str] = path_field()
    layout: str = "auto"
    split: str = "paper"
    split_seed: int = 0
    size: Optional[int] = None
    max_tokens: int = MAX_TOKENS
    max_characters: int = MAX_CHARACTERS
    max_pieces: int = MAX_PIECES
    vocabulary: VocabularyConfig = field(default_factory=VocabularyConfig)
    labels: LabelsConfig = field(default_factory=LabelsConfig)
    embeddings: EmbeddingsConfig = field(default_factory=EmbeddingsConfig)

    def __post_init__(self) -> None:
        known = {"layout": ("auto", *LAYOUTS), "split": ("paper", "own")}
        for key, values in known.items():
            if getattr(self, key) not in values:
                raise UserError(
                    f"data.{key}: {getattr(self, key)!r} is none of {', '.join(values)}"
                )
        least = {"split_seed": 0, "size": 1, "max_tokens": 1, "max_characters": 1}
        least["max_pieces"] = 3
        for key, minimum in least.items():
            value = getattr(self, key)
            if value is not None and value < minimum:
                raise UserError(f"data.{key} must be ≥ {minimum}, not {value}")
        if self.vocabulary.source == "embeddings" and self.embeddings.path is None:
            raise UserError("data.embeddings.path must be set with vocabulary source: embeddings")
        for key in ("vocabulary", "labels", "embeddings"):
            path = getattr(self, key).path
            if path is not None and self.path is not None and _lies_in(path, self.path):
                raise UserError(
                    f"data.{key}.path: {path} is the corpus itself, which is private; name public "
                    "text from elsewhere, or use source: train, which the report then tells"
                )


@dataclass(frozen=True, eq=False)
class Corpus:
    """All utterances of a corpus, and which of them train, validate and test."""

    name: str
    is_standin: bool
    utterances: Tuple[Utterance, ...]
    split: Split

    @cached_property
    def train(self) -> List[Utterance]:
        """The training part: the members."""
        return [self.utterances[i] for i in self.split.train]

    @cached_property
    def validation(self) -> List[Utterance]:
        """The validation part."""
        return [self.utterances[i] for i in self.split.validation]

    @cached_property
    def test(self) -> List[Utterance]:
        """The test part: the non-members."""
        return [self.utterances[i] for i in self.split.test]


def load_corpus(config: DataConfig) -> Corpus:
    """Finds, reads (or makes) and splits a corpus.

    Returns:
        The same corpus and split for the same settings and files.

    Raises:
        UserError: it is not found, broken, has no split of its own, or a part of it is empty.

    Edge cases:
        A corpus whose own split has no validation part (SNIPS as published) has 5 % of its
        training part held out. Its own split may hold an utterance on two sides, as published;
        the paper's split never does.
    """
    if config.split == "own":
        utterances, split = join_parts(_subset_parts(_own_parts(config), config))
    else:
        utterances = _all_utterances(config)
        split = split_corpus(utterances, seed=config.split_seed)
    for part in PARTS:
        if len(getattr(split, part)) == 0:
            raise UserError(
                f"data: {config.corpus} has too few utterances ({len(utterances)}): its {part} "
                "part is empty"
            )
    is_standin = config.corpus in STANDINS
    return Corpus(config.corpus, is_standin, tuple(utterances), split)


def _lies_in(path: str, folder: str) -> bool:
    """Whether a file is `folder` or lies below it."""
    inner, outer = Path(path).resolve(), Path(folder).resolve()
    return inner == outer or outer in inner.parents


def public_sample(config: DataConfig, path: Optional[str]) -> List[Utterance]:
    """Utterances from which words or labels may be taken without any cost to privacy.

    Args:
        path: where they are; without it a stand-in draws some of its own, by another seed than
            its data, since its grammar is public.

    Raises:
        UserError: no path, and not a stand-in.
    """
    if path is not None:
        return read_utterances(path)
    if config.corpus not in STANDINS:
        raise UserError(
            f"data: source sample needs the path of public utterances; {config.corpus} has none of "
            "its own (only the stand-ins do)"
        )
    from edp_mx.data.synthetic import make_utterances

    seed = _SAMPLE_SEED + config.split_seed
    return list(make_utterances(config.corpus, size=_STANDIN_SIZE, seed=seed))


def find_corpus(config: DataConfig) -> Path:
    """Where a corpus lies.

    Looked for in `path` if set, else `$EDP_MX_DATA/<corpus>`, `data/<corpus>` and
    `../shared/data/<corpus>` below and beside the working folder.

    Raises:
        UserError: it is in none of them; the sentence says how to get it.
    """
    if config.path is not None:
        if not os.path.exists(config.path):
            raise UserError(f"data.path: {config.path} does not exist")
        return Path(config.path)
    if config.corpus not in PUBLIC_CORPORA:
        known = ", ".join((*PUBLIC_CORPORA, *STANDINS))
        raise UserError(
            f"data.corpus: {config.corpus!r} is none of {known}; for a corpus of your own set "
            "data.path"
        )
    roots = [os.environ.get("EDP_MX_DATA"), "data", os.path.join("..", "shared", "data")]
    for root in roots:
        if root and (Path(root) / config.corpus).is_dir():
            return Path(root) / config.corpus
    raise UserError(
        f"the corpus {config.corpus} is not at hand: run `edp-mx data fetch {config.corpus}`, or "
        "set data.path or EDP_MX_DATA"
    )


def _all_utterances(config: DataConfig) -> List[Utterance]:
    """The whole corpus, made or read, or a random subset of it."""
    if config.corpus in STANDINS and config.path is None:
        from edp_mx.data.synthetic import make_utterances

        size = config.size or _STANDIN_SIZE
        return list(make_utterances(config.corpus, size=size, seed=config.split_seed))
    utterances = read_utterances(find_corpus(config), config.layout)
    return [utterances[i] for i in _chosen(len(utterances), config)]


def _own_parts(config: DataConfig) -> Dict[str, List[Utterance]]:
    """The corpus' own parts, a validation part held out where it has none."""
    if config.corpus in STANDINS and config.path is None:
        raise UserError("data.split: a stand-in has no split of its own; set it to paper")
    parts = read_own_splits(find_corpus(config), config.layout)
    if not parts["validation"]:
        train = parts["train"]
        held_out = (1.0 - _OWN_VALIDATION, _OWN_VALIDATION, 0.0)
        split = split_corpus(train, seed=config.split_seed, fractions=held_out)
        parts["train"] = [train[i] for i in split.train]
        parts["validation"] = [train[i] for i in split.validation]
    return parts


def _subset_parts(
    parts: Dict[str, List[Utterance]], config: DataConfig
) -> Dict[str, List[Utterance]]:
    """A random subset of the whole, each utterance in its own part."""
    chosen = _chosen(sum(len(parts[part]) for part in PARTS), config)
    subset: Dict[str, List[Utterance]] = {}
    start = 0
    for part in PARTS:
        end = start + len(parts[part])
        subset[part] = [parts[part][i - start] for i in chosen if start <= i < end]
        start = end
    return subset


def _chosen(total: int, config: DataConfig) -> np.ndarray:
    """Ascending places of the utterances that the settings ask for."""
    if config.size is None:
        return np.arange(total)
    if config.size > total:
        raise UserError(f"data.size: {config.size} of the {total} utterances of {config.corpus}")
    generator = np.random.default_rng(config.split_seed)
    return np.sort(generator.choice(total, size=config.size, replace=False))
