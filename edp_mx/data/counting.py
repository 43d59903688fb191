"""Which tokens, tags and intents occur; of stored utterances without making any of them text."""

from __future__ import annotations

from collections import Counter
from typing import Dict, Iterator, Sequence, Set

from edp_mx.data.stored import StoredUtterances
from edp_mx.data.utterance import Utterance

_A_LINE = 1000  # of the same token


def token_counts(utterances: Sequence[Utterance]) -> Dict[str, int]:
    """How often each token occurs, in the order of first appearance.

    Example:
        >>> token_counts([Utterance(("to", "be", "to"), ("O",) * 3, "x")])
        {'to': 2, 'be': 1}
    """
    if isinstance(utterances, StoredUtterances):
        return utterances.token_counts()
    return dict(Counter(token for utterance in utterances for token in utterance.tokens))


def tags_of(utterances: Sequence[Utterance]) -> Set[str]:
    """The BIO tags that occur."""
    if isinstance(utterances, StoredUtterances):
        return set(utterances.tags())
    return {tag for utterance in utterances for tag in utterance.slots}


def intents_of(utterances: Sequence[Utterance]) -> Set[str]:
    """The intents that occur."""
    if isinstance(utterances, StoredUtterances):
        return set(utterances.intents())
    return {utterance.intent for utterance in utterances}


def lines_of(utterances: Sequence[Utterance]) -> Iterator[str]:
    """All tokens as lines of text, each as often as it occurs; not in the order of speech."""
    for token, count in token_counts(utterances).items():
        for first in range(0, count, _A_LINE):
            yield " ".join([token] * min(_A_LINE, count - first))
