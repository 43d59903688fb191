"""Counts of the contents of a corpus."""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass
from typing import Dict, Iterable, List, Sequence, Tuple

import numpy as np

from edp_mx.data.encoding import MAX_TOKENS
from edp_mx.data.utterance import Utterance
from edp_mx.metrics.spans import spans_of

QUANTILES = (0.0, 0.25, 0.5, 0.75, 0.95, 1.0)
PER_USER = (0.0, 0.5, 1.0)
EXAMPLES_OF = 3


@dataclass(frozen=True)
class Description:
    """Counts of a corpus; `words` are distinct, `repeated` have the tokens of an earlier utterance.

    `most_copies` is how often the most frequent text is there, `cut` how many utterances have more
    tokens than `max_tokens`. Lengths have quantiles at `QUANTILES`, and a user's utterances at
    `PER_USER`; intents and slots stand most common first, with the first utterance of each of the
    three most common intents.
    """

    utterances: int
    tokens: int
    words: int
    repeated: int
    most_copies: int
    cut: int
    max_tokens: int
    lengths: Tuple[int, ...]
    intents: Dict[str, int]
    slots: Dict[str, int]
    examples: Tuple[Utterance, ...]
    users: int = 0
    per_user: Tuple[int, ...] = ()
    unnamed: int = 0


def describe(utterances: Iterable[Utterance], *, max_tokens: int = MAX_TOKENS) -> Description:
    """Count a corpus in one pass; an utterance costs eight bytes until its end.

    Args:
        max_tokens: how many tokens of an utterance are read, as `data.max_tokens`.
    """
    counters: List[Counter] = [Counter() for _ in range(5)]
    intents, slots, words, lengths, users = counters
    texts = array("q")
    first: Dict[str, Utterance] = {}
    for utterance in utterances:
        intents[utterance.intent] += 1
        slots.update(span.type for span in spans_of(utterance.slots))
        words.update(utterance.tokens)
        lengths[len(utterance.tokens)] += 1
        users[utterance.user] += 1
        texts.append(hash(utterance.tokens))
        first.setdefault(utterance.intent, utterance)
    count = sum(intents.values())
    unnamed = users.pop("", 0)
    copies = np.unique(np.asarray(texts), return_counts=True)[1]
    return Description(
        utterances=count,
        tokens=sum(words.values()),
        words=len(words),
        repeated=count - len(copies),
        most_copies=int(copies.max(initial=0)),
        cut=sum(number for length, number in lengths.items() if length > max_tokens),
        max_tokens=max_tokens,
        lengths=quantiles(lengths),
        intents=_ranked(intents),
        slots=_ranked(slots),
        examples=tuple(first[intent] for intent in list(_ranked(intents))[:EXAMPLES_OF]),
        users=len(users),
        per_user=quantiles(Counter(users.values()), PER_USER),
        unnamed=unnamed,
    )


def quantiles(counts: Dict[int, int], shares: Sequence[float] = QUANTILES) -> Tuple[int, ...]:
    """Return the quantile of each share; empty if nothing is counted."""
    values = sorted(counts)
    below = np.cumsum([counts[value] for value in values])
    places = np.searchsorted(below, np.array(shares) * below[-1]) if values else ()
    return tuple(values[place] for place in places)


def _ranked(counts: Counter) -> Dict[str, int]:
    """Sort counts, most common first, ties by name."""
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
