"""The names of labels: heads that start from labels alike in name, and the words of an intent."""

from __future__ import annotations

import math
import re
from collections import Counter
from pathlib import Path
from typing import Dict, List, Mapping, Optional, Sequence, Set, Tuple

import numpy as np

from edp_mx.data.tokenizer import Tokenizer
from edp_mx.errors import UserError
from edp_mx.runtime.yaml_tree import read_mapping

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


def label_words(intents: Sequence[str], path: Optional[str]) -> Dict[str, List[str]]:
    """Return the words of each intent: those of a file, and for others those of their names.

    Args:
        path: a YAML file of intents and their words, each a text or a list of texts.

    Raises:
        UserError: the file cannot be read, names an intent that is not there, or has something
            else than words for one.

    Example:
        >>> label_words(["PlayMusic", "snips.GetWeather"], None)
        {'PlayMusic': ['play', 'music'], 'snips.GetWeather': ['snips', 'get', 'weather']}
    """
    found = {intent: spelled_words(intent) or [intent] for intent in intents}
    tree, origins = read_mapping(Path(path)) if path is not None else ({}, {})
    for intent, value in tree.items():
        place = f"model.label_words: {origins[(intent,)]}"
        if intent not in found:
            raise UserError(f"{place}: there is no intent {intent!r} in the data; leave it out")
        texts = value if isinstance(value, list) else [value]
        words = [word for text in texts for word in (text.split() if isinstance(text, str) else [])]
        if not words or not all(isinstance(text, str) for text in texts):
            raise UserError(f"{place}: the words of {intent} must be a text or a list of texts")
        found[intent] = words
    return found


def label_pieces(words: Mapping[str, Sequence[str]], tokenizer: Tokenizer) -> List[List[int]]:
    """Return the ids of the pieces of each intent's words; unspellable ones are left out.

    Raises:
        UserError: nothing is left of an intent.
    """
    unknown, found = tokenizer.special_ids.unk, []
    for intent, own in words.items():
        pieces = [i for word in own for i in tokenizer.ids(word) if i != unknown]
        if not pieces:
            raise UserError(
                f"model.intents: infilling: the word pieces cannot spell {' '.join(own)!r}, the "
                f"words of the intent {intent!r}; give it others in model.label_words"
            )
        found.append(pieces)
    return found
