"""Lists of words and of labels, for configurations whose words and labels are to be public."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence

from edp_mx.data.description import Description
from edp_mx.data.labels import FROM, PRIVATE, PUBLIC
from edp_mx.data.readers.columns_config import ColumnsConfig
from edp_mx.data.sources import named_utterances
from edp_mx.data.text import lines_of
from edp_mx.data.tokenization import split_tokens
from edp_mx.data.utterance import Utterance
from edp_mx.runtime.files import PathLike, write_json

TEXTS = (".txt", ".txt.gz")


def texts_of(
    source: str, *, size: int, seed: int, columns: Optional[ColumnsConfig] = None
) -> Iterable[Utterance]:
    """Yield each utterance of a corpus, or of each line of a text: without tags, and intent "".

    Args:
        source: a .txt or .txt.gz file with one utterance per line; else a corpus, as for
            `named_utterances`.
        size: how many utterances of a stand-in.
        columns: which keys or columns of a corpus hold what; by default the usual ones.
    """
    if source.endswith(TEXTS):
        return lines_as_texts(source)
    return named_utterances(source, size=size, seed=seed, columns=columns)


def lines_as_texts(path: PathLike) -> Iterable[Utterance]:
    """Yield each line of a text, without tags, and intent ""."""
    return (Utterance(tuple(split_tokens(line)), (), "") for line in lines_of(Path(path)))


def tokens_of(source: str, **made: Any) -> Iterator[Sequence[str]]:
    """Yield the tokens of `texts_of`."""
    return (utterance.tokens for utterance in texts_of(source, **made))


def common_words(texts: Iterable[Sequence[str]], *, min_count: int = 1) -> List[str]:
    """Return the words that occur often enough, the most common first, ties by the alphabet.

    Example:
        >>> common_words([["call", "mum"], ["call", "dad"], ["mum"]], min_count=2)
        ['call', 'mum']
    """
    counts = Counter(token for tokens in texts for token in tokens)
    often = [word for word, count in counts.items() if count >= min_count]
    return sorted(often, key=lambda word: (-counts[word], word))


def labels_in(description: Description) -> Dict[str, List[str]]:
    """Return the intents and the names of slots, as a list of labels holds them."""
    return {"intents": sorted(description.intents), "slots": sorted(description.slots)}


def write_labels(
    path: PathLike,
    labels: Dict[str, List[str]],
    *,
    private: Sequence[str] = (),
    declared_by: Optional[str] = None,
) -> None:
    """Write a list of labels, which says so if it was read from a private corpus.

    Args:
        private: the private corpora that the labels were read from, by their paths.
        declared_by: the option by which the user has declared these labels public; None if none.
    """
    marks = {}
    if private:
        names = ", ".join(Path(name).name for name in private)
        why = f"read from {', '.join(private)}; remove this line if all names below are public"
        marks = {PRIVATE: why, FROM: names}
        if declared_by is not None:
            marks = {PUBLIC: f"read from {names}, declared public by {declared_by}"}
    write_json(path, {**marks, **labels})
