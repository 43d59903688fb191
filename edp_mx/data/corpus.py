"""A corpus by name: found, read or made, and split; a large one is cached."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import Dict, Iterable, Mapping, Optional, Sequence, Tuple

import numpy as np

from edp_mx.data.arrow_file import write_store
from edp_mx.data.cache import cache_folder, cache_key, keep, open_cached
from edp_mx.data.columnar_corpus import select
from edp_mx.data.config import DataConfig
from edp_mx.data.fingerprint import fingerprint
from edp_mx.data.ids import digest_of, refuse_repeated
from edp_mx.data.readers import files_of, require_own_split
from edp_mx.data.sources import find_corpus, is_made, stream_corpus
from edp_mx.data.splits import PARTS, Split, own_split, split_by_keys
from edp_mx.data.strata import keys_of
from edp_mx.data.synthetic import grammar_files
from edp_mx.data.text import digest
from edp_mx.data.users import names_users
from edp_mx.data.utterance import Utterance
from edp_mx.dp.sampling.shuffle import numbers_below
from edp_mx.errors import UserError
from edp_mx.runtime.progress import Heartbeat, Progress, no_heartbeat, no_progress

KEPT_FROM = 50_000  # utterances; smaller corpora are read at every start
_KNOWN = 0.2  # of a test part: more than people repeat by chance

logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Corpus:
    """All utterances of a corpus, and which of them train, validate and test.

    `fingerprints` are those of the parts and of "corpus", as far as no pass over the text is
    needed.
    """

    name: str
    utterances: Sequence[Utterance]
    split: Split
    fingerprints: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def train(self) -> Sequence[Utterance]:
        """The training part: the members."""
        return self._part("train")

    @cached_property
    def validation(self) -> Sequence[Utterance]:
        return self._part("validation")

    @cached_property
    def test(self) -> Sequence[Utterance]:
        """The test part: the non-members."""
        return self._part("test")

    def fingerprint(self) -> str:
        """Return the fingerprint of the three parts, one after the other."""
        known = self.fingerprints.get("corpus")
        return known or fingerprint(u for part in PARTS for u in getattr(self, part))

    def _part(self, name: str) -> Sequence[Utterance]:
        known = self.fingerprints.get(name, "")
        return select(self.utterances, getattr(self.split, name), fingerprint=known)


def load_corpus(
    config: DataConfig, *, heartbeat: Heartbeat = no_heartbeat, progress: Progress = no_progress
) -> Corpus:
    """Find, read (or make) and split a corpus; a large one is read once and cached (see `cache`).

    Raises:
        UserError: it is not found, broken, has no split of its own, a part of it is empty, or some
            of its utterances name a user and others do not.

    Edge cases: a corpus whose own split has no validation part (SNIPS as published) has 5 % of its
        training part held out, or the share that `data.split.validation` says. Its own split may
        hold a user or an utterance on two sides, as published (see `splits.users_on_two_sides`).
        The paper's split holds no user on two sides where the corpus names users, and no repeated
        utterance where it does not.
    """
    if config.fractions is None and is_made(config):
        raise UserError("data.split: a stand-in has no split of its own; set it to paper")
    corpus = _kept(config, heartbeat, progress) or _held(config, stream_corpus(config))
    for part in PARTS:
        if len(getattr(corpus.split, part)) == 0:
            few = "utterances, or users," if names_users(corpus.utterances) else "utterances"
            raise UserError(
                f"data: {config.corpus} has too few {few} ({len(corpus.utterances):,}, of which "
                f"{len({one.tokens for one in corpus.utterances}):,} differ): its {part} part is "
                "empty; add some, or set other shares by data.split"
            )
    if config.test_file is not None:
        _warn_of_known(corpus)
    return corpus


def _warn_of_known(corpus: Corpus) -> None:
    """Warn of a test part that is trained on: its scores would be those of what was learned."""
    told = {digest(" ".join(utterance.tokens)) for utterance in corpus.train}
    known = sum(digest(" ".join(utterance.tokens)) in told for utterance in corpus.test)
    if known >= _KNOWN * len(corpus.test):
        logger.warning(
            "data.split.test: %s of %s test utterances stand in the training part too, so that "
            "their scores say little of others; name utterances that are not trained on",
            f"{known:,}",
            f"{len(corpus.test):,}",
        )


def _kept(config: DataConfig, heartbeat: Heartbeat, progress: Progress) -> Optional[Corpus]:
    """Return the corpus from the cache, or in memory if it is small; None without cache."""
    folder = cache_folder()
    if folder is None:
        return None
    key = _cache_key(config)
    stored = open_cached(folder, key)
    if stored is None:
        first = list(islice(stream_corpus(config), KEPT_FROM))
        if len(first) < KEPT_FROM:
            return _held(config, first)
        del first  # a large corpus is not held in memory, not even its beginning
        write = partial(
            write_store,
            utterances=stream_corpus(config),
            arrange=partial(_arrange, config),
            heartbeat=heartbeat,
            progress=progress,
            total=config.size if is_made(config) else None,
        )
        unchanged = lambda: _cache_key(config) == key  # noqa: E731
        stored = keep(folder, key, write, unchanged=unchanged, heartbeat=heartbeat)
    if stored is None:
        return None
    return Corpus(config.corpus, stored.utterances, stored.split, stored.fingerprints)


def _cache_key(config: DataConfig) -> str:
    split = config.split if isinstance(config.split, str) else asdict(config.split)
    data = (config.corpus, config.layout, split, config.split_seed, config.size)
    if is_made(config):
        return cache_key(data, grammar_files(config.corpus))
    files = files_of(find_corpus(config), config.layout)
    files += files_of(config.test_file) if config.test_file else []
    names = config.columns.label_names
    files += [("label names", Path(names))] if names else []
    return cache_key((*data, asdict(config.columns)), files)


def _held(config: DataConfig, utterances: Iterable[Tuple[str, Utterance]]) -> Corpus:
    pairs = list(utterances)
    sizes, read = Counter(part for part, _ in pairs), [utterance for _, utterance in pairs]
    if not is_made(config):
        ids = [utterance.id for utterance in read]
        refuse_repeated([digest_of(id) for id in ids], ids, find_corpus(config))
    rows, split = _arrange(config, sizes, *keys_of(read))
    return Corpus(config.corpus, tuple(read[i] for i in rows), split)


def _arrange(
    config: DataConfig, sizes: Dict[str, int], keys: np.ndarray, intents: np.ndarray
) -> Tuple[np.ndarray, Split]:
    """Return the places of the wanted utterances in order, (U,), and the split of these."""
    if config.fractions is not None:
        rows = numbers_below(len(keys)) if is_made(config) else _chosen(len(keys), config)
        if len(rows) < len(keys):
            keys, intents = keys[rows], intents[rows]
        return rows, split_by_keys(
            keys, intents, seed=config.split_seed, fractions=config.fractions
        )
    require_own_split(find_corpus(config), sizes)
    rows, split = own_split(sizes, keys, intents, seed=config.split_seed, held_out=config.held_out)
    chosen = _chosen(len(rows), config)
    bounds = np.cumsum([0] + [len(getattr(split, part)) for part in PARTS])
    edges = np.searchsorted(chosen, bounds)
    return rows[chosen], Split(*(np.arange(a, b) for a, b in zip(edges, edges[1:])))


def _chosen(total: int, config: DataConfig) -> np.ndarray:
    if config.size is None:
        return numbers_below(total)
    if config.size > total:
        raise UserError(
            f"data.size must be at most {total}, as many as {config.corpus} has, not {config.size}"
        )
    generator = np.random.default_rng(config.split_seed)
    return np.sort(generator.choice(total, size=config.size, replace=False))
