"""One labelled corpus from several: each corpus' name is a prefix of its labels."""

from __future__ import annotations

import json
import random
from itertools import islice
from pathlib import Path
from typing import Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple

from edp_mx.data.origin import noted_sources
from edp_mx.data.readers import stream_utterances
from edp_mx.data.readers.columns_config import ColumnsConfig
from edp_mx.data.sources import STANDIN_SIZE, find_named, is_standin
from edp_mx.data.synthetic import make_utterances
from edp_mx.data.text import write_lines
from edp_mx.data.utterance import Utterance
from edp_mx.errors import UserError
from edp_mx.runtime.files import PathLike
from edp_mx.runtime.limits import MOST_COUNTED

_DRAWS = 20  # a stand-in is drawn at most so many times for each distinct utterance
_SUFFIXES = (".jsonl", ".jsonl.gz")


class Wanted(NamedTuple):
    """A corpus, named or a path, and how many of its distinct utterances; None: all."""

    corpus: str
    size: Optional[int] = None

    @classmethod
    def parse(cls, text: str) -> Wanted:
        """Return the corpus and the size that "atis" or "atis:1000" names."""
        corpus, colon, size = text.rpartition(":")
        if not colon or Path(text).exists():
            return cls(text)
        if not size.isdecimal() or not 1 <= int(size[:20]) <= MOST_COUNTED:
            raise UserError(
                f"{text}: after the colon comes a number of utterances, 1 to {MOST_COUNTED:,}"
            )
        return cls(corpus, int(size))

    @property
    def label(self) -> str:
        """The prefix of its labels: its name, or its file's name up to the first dot."""
        return Path(self.corpus).name.partition(".")[0]


def merge(
    wanted: Iterable[Wanted],
    out: PathLike,
    *,
    seed: int = 0,
    columns: Optional[ColumnsConfig] = None,
) -> Dict[str, int]:
    """Write one JSON-lines corpus from several: public ones, to start a private training from.

    The intent "flight" of atis becomes "atis.flight", its tag "B-city" "B-atis.city". Users are
    left out, since not every corpus names them.

    Beside it lies the origin of all its utterances, by which a run that is trained on it is known
    to have read them (`data.origin`).

    Args:
        wanted: corpora in any layout; stand-ins are made anew.
        out: a .jsonl or .jsonl.gz file; it is written whole or not at all.
        seed: of the subsets, of the order and of the stand-ins.
        columns: which keys or columns of the corpora hold what; by default the usual ones.

    Returns:
        The number of utterances of each corpus, by its label. Equal input gives equal bytes.

    Raises:
        UserError: a corpus is not there, is broken, has too few distinct utterances, or has the
            same label as another; or the file cannot be written.

    Edge cases:
        An utterance that a corpus repeats, with the same tokens, tags and intent, is written once.
    """
    if not str(out).endswith(_SUFFIXES):
        raise UserError(f"{out}: the name must end in {' or '.join(_SUFFIXES)}")
    parts = list(wanted)
    labels = [part.label for part in parts]
    for label in labels:
        if labels.count(label) > 1:
            raise UserError(
                f"{label} is the label of two corpora; leave one out, or rename its file"
            )
    counts: Dict[str, int] = {}
    lines: List[str] = []
    read: List[Tuple[str, List[Utterance]]] = []
    for part in parts:
        chosen = _choose(part, seed, columns)
        counts[part.label] = len(chosen)
        lines += [_json_line(utterance, part.label) for utterance in chosen]
        read.append((part.corpus, chosen))
    random.Random(seed).shuffle(lines)
    with noted_sources(out, read, seed=seed):
        write_lines(out, lines)
    return counts


def _choose(part: Wanted, seed: int, columns: Optional[ColumnsConfig]) -> List[Utterance]:
    """The distinct utterances of a corpus, or a random subset of them."""
    if is_standin(part.corpus):  # each utterance is a draw: the first are a random subset
        size = part.size * _DRAWS if part.size else STANDIN_SIZE
        made = _distinct(make_utterances(part.corpus, size=size, seed=seed))
        chosen = list(islice(made, part.size))
    else:
        found = stream_utterances(find_named(part.corpus), columns=columns)
        chosen = list(_distinct(utterance for _, utterance in found))
        if part.size is not None and part.size <= len(chosen):
            chosen = random.Random(f"{seed} {part.label}").sample(chosen, part.size)
    if part.size is not None and len(chosen) < part.size:
        raise UserError(
            f"{part.corpus} has {len(chosen):,} distinct utterances, fewer than {part.size:,}"
        )
    return chosen


def _distinct(utterances: Iterable[Utterance]) -> Iterator[Utterance]:
    """The utterances without repeats."""
    seen = set()
    for utterance in utterances:
        if utterance not in seen:  # as to tokens, tags and intent
            seen.add(utterance)
            yield utterance


def _json_line(utterance: Utterance, label: str) -> str:
    """The utterance in our own format, with prefixed labels."""
    slots = [tag if tag == "O" else f"{tag[:2]}{label}.{tag[2:]}" for tag in utterance.slots]
    intent = f"{label}.{utterance.intent}"
    return json.dumps({"tokens": utterance.tokens, "slots": slots, "intent": intent})
