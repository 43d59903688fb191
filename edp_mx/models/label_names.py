"""Heads that know their labels' names: rows of a public model's heads for labels alike in name."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import Dict, List, Mapping, Sequence, Set, Tuple

import numpy as np

MIN_SIMILARITY = 0.35
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")


def spelled_words(label: str) -> List[str]:
    """Return the words of a label's name in order, in lower case.

    Example:
        >>> spelled_words("snips.SearchScreeningEvents")
        ['snips', 'search', 'screening', 'events']
    """
    return [word.lower() for word in _WORD.findall(label)]


def words_of(label: str) -> Set[str]:
    """Return the words of a label's name, in lower case and without a plural's s.

    Example:
        >>> sorted(words_of("snips.SearchScreeningEvents")), sorted(words_of("fromloc.city_name"))
        (['event', 'screening', 'search', 'snip'], ['city', 'fromloc', 'name'])
    """
    words = spelled_words(label)
    return {word[:-1] if len(word) > 3 and word.endswith("s") else word for word in words}


def most_alike(ours: Sequence[str], theirs: Sequence[str]) -> List[List[int]]:
    """Return, for each of our labels, the places of the labels that are most alike in name.

    The similarity is the cosine of the names' words, a word counting the less the more labels have
    it. Below `MIN_SIMILARITY` no label is alike.

    Example:
        >>> most_alike(["city", "playlist"], ["atis.city_name", "x.city", "x.genre", "x.city"])
        [[1, 3], []]
    """
    names = [words_of(label) for label in (*ours, *theirs)]
    counts = Counter(word for words in names for word in words)
    weights = {word: math.log(1 + len(names) / n) for word, n in counts.items()}
    lengths = [math.sqrt(sum(weights[word] ** 2 for word in words)) or 1.0 for words in names]
    found: List[List[int]] = []
    for words, length in zip(names, lengths[: len(ours)]):
        alike = [
            sum(weights[word] ** 2 for word in words & other) / (length * other_length)
            for other, other_length in zip(names[len(ours) :], lengths[len(ours) :])
        ]
        best = max(alike, default=0.0)
        is_alike = best >= MIN_SIMILARITY
        found.append([j for j, value in enumerate(alike) if is_alike and value > best - 1e-9])
    return found


def named_rows(values: np.ndarray, alike: Sequence[Sequence[int]]) -> np.ndarray:
    """Return the mean of the rows alike for each label, and of all rows where none is.

    Shapes: values (theirs, …) → (ours, …).
    """
    return np.stack([values[list(rows) or slice(None)].mean(axis=0) for rows in alike])


def alike_tags(ours: Sequence[str], theirs: Sequence[str]) -> List[List[int]]:
    """Return the places of the tags to start each BIO tag from.

    These are the same part (B or I) of the types alike in name, else that part of all types.
    """
    places: Dict[str, int] = {tag: i for i, tag in enumerate(theirs)}
    types = sorted({tag[2:] for tag in theirs if tag != "O"})
    names = sorted({tag[2:] for tag in ours if tag != "O"})
    alike = {
        name: [types[j] for j in found] for name, found in zip(names, most_alike(names, types))
    }
    found: List[List[int]] = []
    for tag in ours:
        if tag == "O":
            found.append([places["O"]])
            continue
        kept = [places[tag[:2] + t] for t in alike[tag[2:]] if tag[:2] + t in places]
        found.append(kept or [i for other, i in places.items() if other[:2] == tag[:2]])
    return found


def transitions_by_kind(
    ours: Sequence[str], theirs: Sequence[str], scores: np.ndarray
) -> np.ndarray:
    """Return scores of transitions: for each kind of step (O → B, B → I of its type, …) their mean.

    Shapes: scores (theirs, theirs) → (ours, ours).
    """
    sums: Dict[Tuple[str, str, bool], List[float]] = {}
    for i, first in enumerate(theirs):
        for j, second in enumerate(theirs):
            sums.setdefault(_kind(first, second), []).append(float(scores[i, j]))
    means: Mapping[Tuple[str, str, bool], float] = {k: float(np.mean(v)) for k, v in sums.items()}
    return np.array([[means.get(_kind(a, b), 0.0) for b in ours] for a in ours])


def _kind(first: str, second: str) -> Tuple[str, str, bool]:
    """The kind of a step from one tag to the next."""
    return first[0], second[0], first[2:] == second[2:]
