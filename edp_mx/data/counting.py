"""Which tokens, tags and intents occur, counted on numbers in place of text."""

from __future__ import annotations

from typing import Dict, Iterator, Sequence, Set

import numpy as np

from edp_mx.data.stored import numbered
from edp_mx.data.utterance import Utterance

_PER_LINE = 1000  # of the same token


def token_counts(utterances: Sequence[Utterance]) -> Dict[str, int]:
    """Count the occurrences of each token, in the order of first appearance."""
    columns, rows = numbered(utterances)
    return columns.occurring(columns.tokens, columns.token_names, rows)


def tags_of(utterances: Sequence[Utterance]) -> Set[str]:
    """Return the BIO tags that occur."""
    columns, rows = numbered(utterances)
    return set(columns.occurring(columns.tags, columns.tag_names, rows))


def intents_of(utterances: Sequence[Utterance]) -> Set[str]:
    """Return the intents that occur."""
    columns, rows = numbered(utterances)
    return {columns.intent_names[i] for i in np.unique(columns.intents[rows])}


def lines_of(utterances: Sequence[Utterance]) -> Iterator[str]:
    """Yield lines of text with each token as often as it occurs; not in the spoken order."""
    for token, count in token_counts(utterances).items():
        for first in range(0, count, _PER_LINE):
            yield " ".join([token] * min(_PER_LINE, count - first))
