"""F1 of the words of replies, and how varied the words of all replies are."""

from __future__ import annotations

import re
from collections import Counter
from typing import List, Sequence

_PUNCTUATION = re.compile(r"[!\"#$%&()*+,\-./:;<=>?@\[\]\\^`{|}~_']")
_ARTICLES = re.compile(r"\b(a|an|the)\b")


def normalized_words(text: str) -> List[str]:
    """Return the words of a text in lower case, without punctuation and articles.

    Example:
        >>> normalized_words("The cat's on a mat!")
        ['cat', 's', 'on', 'mat']
    """
    return _ARTICLES.sub(" ", _PUNCTUATION.sub(" ", text.lower())).split()


def word_f1(references: Sequence[str], hypothesis: str) -> float:
    """Return the F1 of the words of a reply, a ratio: the best over its references.

    Words count as often as they occur; their order does not matter.

    Edge cases: 0 where nothing is shared, also of two empty texts.

    Source: ConvAI2 (Dinan et al. 2019), as ParlAI computes it.
    """
    found = Counter(normalized_words(hypothesis))
    return max(_f1(Counter(normalized_words(reference)), found) for reference in references)


def distinct(hypotheses: Sequence[str], n: int) -> float:
    """Return the number of different n-grams ÷ that of all n-grams, over all hypotheses.

    Words are in lower case and end at blanks.

    Edge cases: 0 where there is no n-gram.

    Source: Li et al. 2016, distinct-1 and distinct-2.
    Departs: they divide by the number of words for each n; n-grams are common now.

    Example:
        >>> distinct(["I am", "I am here"], 1), distinct(["I am", "I am here"], 2)
        (0.6, 0.6666666666666666)
    """
    counts: Counter = Counter()
    for text in hypotheses:
        words = text.lower().split()
        counts.update(zip(*(words[i:] for i in range(n))))
    total = sum(counts.values())
    return len(counts) / total if total else 0.0


def _f1(reference: Counter, hypothesis: Counter) -> float:
    shared = sum((reference & hypothesis).values())
    return 2 * shared / (sum(reference.values()) + sum(hypothesis.values())) if shared else 0.0
