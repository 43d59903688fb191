"""Which tokens, tags and intents occur; for stored utterances without making them text."""

from __future__ import annotations

from collections import Counter
from typing import Dict, Iterator, Sequence, Set

import numpy as np

from edp_mx.data.stored import StoredUtterances
from edp_mx.data.utterance import Utterance

_PER_LINE = 1000  # of the same token


def token_counts(utterances: Sequence[Utterance]) -> Dict[str, int]:
    """Count the occurrences of each token, in the order of first appearance."""
    if isinstance(utterances, StoredUtterances):
        columns = utterances.columns
        return columns.occurring(columns.tokens, columns.token_names, utterances.rows)
    return dict(Counter(token for utterance in utterances for token in utterance.tokens))


def tags_of(utterances: Sequence[Utterance]) -> Set[str]:
    """Return the BIO tags that occur."""
    if isinstance(utterances, StoredUtterances):
        columns = utterances.columns
        return set(columns.occurring(columns.tags, columns.tag_names, utterances.rows))
    return {tag for utterance in utterances for tag in utterance.slots}


def intents_of(utterances: Sequence[Utterance]) -> Set[str]:
    """Return the intents that occur."""
    if isinstance(utterances, StoredUtterances):
        columns = utterances.columns
        return {columns.intent_names[i] for i in np.unique(columns.intents[utterances.rows])}
    return {utterance.intent for utterance in utterances}


def lines_of(utterances: Sequence[Utterance]) -> Iterator[str]:
    """Yield lines of text with each token as often as it occurs; not in the spoken order."""
    for token, count in token_counts(utterances).items():
        for first in range(0, count, _PER_LINE):
            yield " ".join([token] * min(_PER_LINE, count - first))
