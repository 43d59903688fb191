"""Sources of a corpus: files, or the grammar of a stand-in."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Iterable, Iterator, List, Optional, Tuple

from edp_mx.data.config import PUBLIC_CORPORA, DataConfig
from edp_mx.data.ids import with_unique_ids
from edp_mx.data.readers import read_utterances, stream_utterances
from edp_mx.data.readers.assembly import Assembler
from edp_mx.data.readers.columns_config import ColumnsConfig
from edp_mx.data.synthetic import STANDINS, make_utterances
from edp_mx.data.utterance import Utterance
from edp_mx.errors import UserError

STANDIN_SIZE = 20_000
_SAMPLE_SEED = 1 << 32  # beyond the seeds of data
_KNOWN = ", ".join((*PUBLIC_CORPORA, *STANDINS))
_FETCHED = Path("data")  # where `edp-mx data fetch` puts a corpus


def is_made(config: DataConfig) -> bool:
    """Return whether the corpus is a stand-in that is drawn anew, so that no file is read."""
    return config.corpus in STANDINS and config.path is None


def stream_corpus(config: DataConfig) -> Iterator[Tuple[str, Utterance]]:
    """Make or read the whole corpus, each utterance with the part that it was published in."""
    if not is_made(config):
        assembler = Assembler(config.columns)
        utterances = stream_utterances(find_corpus(config), config.layout, assembler=assembler)
        if config.test_file is None:
            return utterances
        test = stream_utterances(str(config.test_file), assembler=assembler)
        return _with_test_file(utterances, test, config)
    size = config.size or STANDIN_SIZE
    made = make_utterances(config.corpus, size=size, seed=config.split_seed)
    return (("", utterance) for utterance in made)


def _with_test_file(
    utterances: Iterator[Tuple[str, Utterance]],
    test: Iterator[Tuple[str, Utterance]],
    config: DataConfig,
) -> Iterator[Tuple[str, Utterance]]:
    """Add the test part of another file to a corpus that has none."""
    for part, utterance in utterances:
        if part == "test":
            raise UserError(
                f"data.split.test: {find_corpus(config)} has a test part of its own; set "
                "data.split to own, or data.path to what is to be trained on"
            )
        yield part or "train", utterance
    is_empty = True
    for _, utterance in test:
        is_empty = False
        yield "test", replace(utterance, id=f"test/{utterance.id}")
    if is_empty:
        raise UserError(f"data.split.test: {config.test_file} holds no utterances; name another")


def named_utterances(
    name: str,
    *,
    size: int,
    seed: int,
    parts: Optional[Counter] = None,
    columns: Optional[ColumnsConfig] = None,
) -> Iterable[Utterance]:
    """Stream the utterances of a path, of a public corpus, or of a stand-in made on the fly.

    Args:
        name: a path wins over a corpus of that name.
        size: how many utterances of a stand-in.
        parts: where the utterances of each part are counted that a corpus was published in, as
            they are read.
        columns: which keys or columns hold what; by default the usual ones.
    """
    counts = Counter() if parts is None else parts
    if is_standin(name):
        counts[""] += size
        return make_utterances(name, size=size, seed=seed)
    path = find_named(name)

    def read() -> Iterator[Utterance]:
        for part, utterance in stream_utterances(path, columns=columns):
            counts[part] += 1
            yield utterance

    again = (utterance.id for _, utterance in stream_utterances(path, columns=columns))
    return with_unique_ids(read(), again, path)


def refuse_private_lists(config: DataConfig) -> None:
    """Refuse words, labels or vectors from the corpus itself, wherever it was found.

    Raises:
        UserError: a path of theirs is the corpus, lies in it, or holds it.
    """
    found = None if is_made(config) else config.list_within(find_corpus(config))
    if found:
        key, reason = found
        raise UserError(f"data.{key} {reason}")


def public_sample(config: DataConfig, path: Optional[str]) -> List[Utterance]:
    """Return utterances from which words or labels may be taken at no cost to privacy.

    Those of a file are read by `data.columns`, as the corpus is. Without a path a stand-in draws
    its own, by another seed than its data: its grammar is public.
    """
    if path is not None:
        return read_utterances(path, columns=config.columns)
    if config.corpus not in STANDINS:
        raise UserError("data: the source sample needs a path; only stand-ins can draw their own")
    seed = _SAMPLE_SEED + config.split_seed
    return list(make_utterances(config.corpus, size=STANDIN_SIZE, seed=seed))


def is_standin(name: str) -> bool:
    """Return whether a name is that of a stand-in; a path wins."""
    return name in STANDINS and not Path(name).exists()


def find_named(name: str) -> Path:
    """Return a path, or where the public corpus of that name is; a path wins.

    Raises:
        UserError: neither is there.
    """
    if Path(name).exists():
        return Path(name)
    if name not in PUBLIC_CORPORA:
        raise UserError(f"{name}: no such file or folder, nor a corpus ({_KNOWN})")
    return find_corpus(DataConfig(corpus=name))


def find_corpus(config: DataConfig) -> Path:
    """Return `path` if it is set; else `$EDP_MX_DATA/<corpus>`; else `data/<corpus>`."""
    if config.path is not None:
        if not os.path.exists(config.path):
            raise UserError(f"data.path: {config.path} does not exist")
        return Path(config.path)
    if config.corpus not in PUBLIC_CORPORA:
        raise UserError(
            f"data.corpus must be one of {_KNOWN}, not {config.corpus!r}, unless data.path is set"
        )
    named = os.environ.get("EDP_MX_DATA")
    places = [root / config.corpus for root in (*([Path(named)] if named else []), _FETCHED)]
    for place in places:
        if place.is_dir():
            return place
    raise UserError(
        f"the corpus {config.corpus} is not there: {' and '.join(map(str, places))} "
        f"{'does' if len(places) == 1 else 'do'} not exist; run `edp-mx data fetch "
        f"{config.corpus}`, or set data.path or EDP_MX_DATA"
    )
