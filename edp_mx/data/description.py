"""Counts of the contents of a corpus."""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import Dict, Iterable, List, Optional, Sequence, Tuple

import numpy as np

from edp_mx.data.encoding import MAX_PIECES, MAX_TOKENS
from edp_mx.data.strata import folded_text
from edp_mx.data.tokenizer import Tokenizer
from edp_mx.data.utterance import Utterance
from edp_mx.metrics.spans import spans_of

QUANTILES = (0.0, 0.25, 0.5, 0.75, 0.95, 1.0)
PER_USER = (0.0, 0.5, 1.0)
EXAMPLES_OF = 3
ENDS = 2  # pieces before and after an utterance


@dataclass(frozen=True)
class Repeats:
    """How often a corpus repeats an utterance: k copies are protected k times worse.

    Attributes:
        copies: number of utterances whose words, in upper or lower case, are those of another one.
        most: how often the most frequent words are there.
    """

    copies: int
    most: int

    @classmethod
    def of(cls, hashes: array) -> Repeats:
        """Count them by a hash of the words of each utterance."""
        counts = np.unique(np.asarray(hashes), return_counts=True)[1]
        return cls(int(counts[counts > 1].sum()), int(counts.max(initial=0)))

    def describe(self) -> str:
        """Return it in words."""
        if self.most < 2:
            return "no two utterances have the same words"
        return (
            f"{self.copies:,} utterances have the words of another one; the most frequent has "
            f"{self.most:,} copies, which together are protected {self.most:,} times worse"
        )


@dataclass(frozen=True)
class Description:
    """Counts of a corpus; `words` are distinct.

    `cut` counts the utterances with more than `max_tokens` tokens or, if pieces were counted, more
    than `max_pieces` of these. Lengths have quantiles at `QUANTILES`, and a user's utterances at
    `PER_USER`; intents and slots stand most common first, with the first utterance of each of the
    three most common intents.
    """

    utterances: int
    tokens: int
    words: int
    repeats: Repeats
    cut: int
    max_tokens: int
    max_pieces: Optional[int]
    lengths: Tuple[int, ...]
    intents: Dict[str, int]
    slots: Dict[str, int]
    examples: Tuple[Utterance, ...]
    users: int = 0
    per_user: Tuple[int, ...] = ()
    unnamed: int = 0


def describe(
    utterances: Iterable[Utterance],
    *,
    max_tokens: int = MAX_TOKENS,
    max_pieces: int = MAX_PIECES,
    tokenizer: Optional[Tokenizer] = None,
) -> Description:
    """Count a corpus in one pass; an utterance costs eight bytes until its end.

    Args:
        max_tokens: how many tokens of an utterance are read, as `data.max_tokens`.
        max_pieces: how many pieces of `tokenizer`, as `data.max_pieces`; without one, none count.
    """
    cut = 0
    counters: List[Counter] = [Counter() for _ in range(5)]
    intents, slots, words, lengths, users = counters
    texts = array("q")
    first: Dict[str, Utterance] = {}
    num_pieces = lru_cache(1 << 17)(lambda token: len(tokenizer.ids(token)) if tokenizer else 0)
    for utterance in utterances:
        intents[utterance.intent] += 1
        slots.update(span.type for span in spans_of(utterance.slots))
        words.update(utterance.tokens)
        lengths[len(utterance.tokens)] += 1
        users[utterance.user] += 1
        texts.append(hash(folded_text(utterance)))
        pieces = sum(map(num_pieces, utterance.tokens))
        cut += len(utterance.tokens) > max_tokens or pieces + ENDS > max_pieces
        first.setdefault(utterance.intent, utterance)
    count = sum(intents.values())
    unnamed = users.pop("", 0)
    return Description(
        utterances=count,
        tokens=sum(words.values()),
        words=len(words),
        repeats=Repeats.of(texts),
        cut=cut,
        max_tokens=max_tokens,
        max_pieces=max_pieces if tokenizer else None,
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
