"""The origin of a model or a merged corpus: its sources, recognised by keyed hashes."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Iterable, Iterator, List, Optional, Sequence, Set, Tuple

import numpy as np

from edp_mx.data.config import DataConfig
from edp_mx.data.corpus import Corpus
from edp_mx.data.fingerprint import fingerprint, keyed_all
from edp_mx.data.sources import find_corpus, find_named, is_made, is_standin
from edp_mx.data.text import LEAST, SHARE, digest, is_large_share, letters_of
from edp_mx.data.utterance import Utterance, texts_of
from edp_mx.errors import UserError
from edp_mx.runtime.files import PathLike, write_json
from edp_mx.runtime.json_text import read_json
from edp_mx.runtime.structured import NotOfKind, structure

ORIGIN = "origin.json"
SAMPLE = 4096  # texts of a corpus that are written down, each as a keyed hash
_DIGITS = 12  # of such a hash
_LONG = 24  # letters of a text that two corpora hardly have in common by chance
_SURE = 10  # texts that a sample is expected to have of a corpus within, so that it misses few

UNKNOWN, GONE, MERGED = "unknown", "gone", "merged"


@dataclass(frozen=True)
class Read:
    """A corpus that was read, for whoever has the key of the hashes to recognise.

    Guarantee: to all others the hashes are random digits, as many as the corpus' size says; no two
    of these objects share a salt, so that nobody can compare them either.

    Attributes:
        corpus: its name.
        key, salt: the name of the key of all hashes here, and what is hashed before each.
        places, above: of the files and folders that were read, and of the folders above.
        part: of the fingerprint of the training part.
        seed: of a stand-in that was made.
        size: how many texts were read: utterances or lines, and the parts of those that have parts.
        sample: of `SAMPLE` texts at most, one behind the other; random ones in place of repeated
            texts.
    """

    corpus: str
    key: str = ""
    salt: str = ""
    places: Tuple[str, ...] = ()
    above: Tuple[str, ...] = ()
    part: Optional[str] = None
    seed: Optional[int] = None
    size: int = 0
    sample: str = ""

    @classmethod
    def at(cls, corpus: str, paths: Iterable[Path], *, salt: Optional[str] = None) -> Read:
        """Return the identity of files and folders: their place."""
        salt = os.urandom(16).hex() if salt is None else salt
        places = [path.resolve() for path in paths]
        folders = sorted({str(folder) for path in places for folder in path.parents})
        key, hashed = keyed_all(map(str, places), salt=salt)
        _, above = keyed_all(folders, salt=salt)
        return cls(corpus, key, salt, tuple(hashed), tuple(above))

    @classmethod
    def of(cls, data: DataConfig, *, salt: Optional[str] = None) -> Read:
        """Return the identity of a corpus: its place, or the seed that it is made with."""
        if is_made(data):
            return replace(cls.at(data.corpus, (), salt=salt), seed=data.split_seed)
        try:
            paths = [find_corpus(data)]
        except UserError:  # it is not there any more
            paths = [Path(data.path)] if data.path else []
        return cls.at(data.corpus, paths, salt=salt)

    def with_part(self, fingerprint: str) -> Read:
        """Return it with the fingerprint of a training part."""
        (part,) = keyed_all([fingerprint], salt=self.salt)[1]
        return replace(self, part=part)

    def with_texts_of(self, utterances: Iterable[Utterance]) -> Read:
        """Return it with a sample of the texts of utterances: those with the lowest digests."""
        digests = _digests(utterances)
        size, lowest = len(digests), np.unique(digests)[:SAMPLE]
        hashed = list(self._hashed(lowest.tolist()))
        hashed += [os.urandom(_DIGITS // 2).hex() for _ in range(min(size, SAMPLE) - len(hashed))]
        return replace(self, size=size, sample="".join(sorted(hashed)))

    def count_in(self, digests: Iterable[int]) -> Tuple[int, int]:
        """Return how many texts of the sample are among those, and how many there are in all."""
        sample = {self.sample[i : i + _DIGITS] for i in range(0, len(self.sample), _DIGITS)}
        return sum(text in sample for text in self._hashed(digests)), len(sample)

    def _hashed(self, digests: Iterable[int]) -> Iterator[str]:
        return keyed_all(map(str, digests), salt=self.salt, digits=_DIGITS)[1]


def _digests(utterances: Iterable[Utterance]) -> np.ndarray:
    """Return the digest of each text, and of the parts of those that have parts, uint64."""
    texts = chain.from_iterable(texts_of(utterance.tokens) for utterance in utterances)
    return np.fromiter(map(digest, texts), np.uint64)


def _letters_in(utterances: Iterable[Utterance]) -> Set[str]:
    return {letters_of(text) for each in utterances for text in texts_of(each.tokens)}


@dataclass(frozen=True)
class Origin:
    """A training that a model descends from, or what a merged corpus was made of.

    Attributes:
        name: of the run, the checkpoint or the file.
        how: its privacy mechanism, or `UNKNOWN`, `GONE` (a run that is) or `MERGED`.
        epsilon: that held; None for ∞, or where it is not known.
        words: where the model took its words from, as `data.vocabulary.source` has it.
        corpora: that were read; none where they are not known.
        source: of a public encoder: its repository, revision and licence.
    """

    name: str
    how: str
    epsilon: Optional[float] = None
    words: str = "train"
    corpora: Tuple[Read, ...] = ()
    source: str = ""


@dataclass(frozen=True)
class _Line:
    """The content of a file: a line of descent, the nearest first."""

    origin: Tuple[Origin, ...]


def beside(path: PathLike) -> Path:
    """Return the place of the origin of a file: a merged corpus, prompts or word vectors."""
    return Path(f"{path}.{ORIGIN}")


def write_origin(path: PathLike, line: Iterable[Origin]) -> None:
    """Write a line of descent, the nearest first."""
    write_json(path, asdict(_Line(tuple(line))))


@contextmanager
def noted_sources(
    out: PathLike, sources: Iterable[Tuple[str, Iterable[Utterance]]], *, seed: int
) -> Iterator[None]:
    """Note, beside a file that is now made of corpora, which these are, by a sample of their texts.

    The file is never there without its origin: until it is written, the note names its sources and
    those of an older file in its place.

    Args:
        sources: the name or path of each, and what is read of it.
        seed: of stand-ins.
    """
    corpora = [read for name, utterances in sources for read in _named(name, utterances, seed)]
    origin = [Origin(Path(out).name, MERGED, corpora=tuple(corpora))]
    write_origin(beside(out), [*read_origin(beside(out)), *origin])
    yield
    write_origin(beside(out), origin)


def _named(name: str, utterances: Iterable[Utterance], seed: int) -> List[Read]:
    """The identity of a named corpus, with its own sources where it was made of others."""
    if is_standin(name):
        return [Read.of(DataConfig(corpus=name, split_seed=seed)).with_texts_of(utterances)]
    path = find_named(name)
    read = Read.at(path.name.partition(".")[0], [path])
    return [read.with_texts_of(utterances), *sources_of(path)]


def read_origin(path: PathLike) -> Tuple[Origin, ...]:
    """Read the file of `write_origin`, nothing where there is none; refuse anything else."""
    if not Path(path).exists():
        return ()
    try:
        return structure(read_json(path), _Line).origin
    except NotOfKind as error:
        raise UserError(
            f"{path} does not say where this comes from ({error}): it was damaged or changed, or "
            "an older version wrote it; restore it, or make anew what it lies beside"
        ) from error


def corpora_of(data: DataConfig, train: Sequence[Utterance]) -> Tuple[Read, ...]:
    """Return the sources of a run: its training part, and the sources of a merged corpus."""
    own = Read.of(data).with_part(fingerprint(train)).with_texts_of(train)
    return (own, *sources_of(data.path))


def origins_beside(path: Optional[PathLike]) -> Tuple[Origin, ...]:
    """Return the origins of a merged corpus, or of those in a folder; nothing for any other."""
    places = [] if path is None else [beside(path), *sorted(Path(path).glob(f"*.{ORIGIN}"))]
    return tuple(origin for place in places for origin in read_origin(place))


def sources_of(path: Optional[PathLike]) -> Tuple[Read, ...]:
    """Return the sources of merged corpora; nothing for any other."""
    return tuple(read for origin in origins_beside(path) for read in origin.corpora)


@dataclass(frozen=True, eq=False)
class AtHand:
    """A corpus that is about to be trained on."""

    data: DataConfig
    corpus: Corpus

    def is_in(self, theirs: Read) -> Optional[bool]:
        """Return whether this corpus was read there; None where that cannot be told.

        It was, if both are the same stand-in with the same seed, or lie at the same place, or have
        the same training part, or a tenth of the texts of the smaller one in common; where no texts
        can be compared, if they have the same name. Another training part may be another split.
        """
        ours = Read.of(self.data, salt=theirs.salt)
        if None not in (ours.seed, theirs.seed):
            return (ours.corpus, ours.seed) == (theirs.corpus, theirs.seed)
        if theirs.key == ours.key:
            near = {*theirs.places, *theirs.above}
            if {*ours.places} & near or {*theirs.places} & {*ours.above}:
                return True
            if theirs.part and ours.with_part(self._fingerprint).part == theirs.part:
                return True
            if theirs.sample:
                return self._shares(theirs)
        return True if ours.corpus == theirs.corpus else None

    def is_public(self, utterances: Iterable[Utterance], source: PathLike) -> bool:
        """Return whether the corpus is not among those of a file that is to be public.

        It is, if the file has a tenth of the texts of the smaller of the two, and at least three,
        or all of the corpus; or if its origin says so. What many say by chance does not count: of a
        corpus with long texts, those below 24 letters are left out.
        """
        if any(self.is_in(read) for read in sources_of(source)):
            return False
        ours, theirs = self._letters, _letters_in(utterances)
        if any(len(text) >= _LONG for text in ours):
            ours, theirs = ({t for t in each if len(t) >= _LONG} for each in (ours, theirs))
        is_whole = bool(ours) and ours <= theirs
        return not is_whole and not is_large_share(len(ours & theirs), min(len(ours), len(theirs)))

    def _shares(self, theirs: Read) -> Optional[bool]:
        """Whether a part of their texts that chance does not explain is among ours.

        None where the sample would hardly have a text of ours even if all of them were theirs.
        """
        shared, sampled = theirs.count_in(self._distinct.tolist())
        ours = len(self._distinct)
        if shared < min(LEAST, sampled):
            is_sure = sampled == theirs.size or sampled * ours >= _SURE * theirs.size
            return False if is_sure else None
        return shared / sampled * theirs.size >= SHARE * min(theirs.size, ours)

    @cached_property
    def _fingerprint(self) -> str:
        return fingerprint(self.corpus.train)

    @cached_property
    def _letters(self) -> Set[str]:
        """The letters of each text of all three parts."""
        return _letters_in(self.corpus.utterances)

    @cached_property
    def _distinct(self) -> np.ndarray:
        """The digest of each text of all three parts once, (D,)."""
        return np.unique(_digests(self.corpus.utterances))
