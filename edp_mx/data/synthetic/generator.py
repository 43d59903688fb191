"""Draws utterances from a grammar in blocks: the same seed gives the same bytes.

Each block of 10,000 has a random stream of its own, seeded by (seed, corpus, block), so the first
n utterances are the same whatever the size, and memory does not grow with the size.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from functools import lru_cache
from typing import Callable, Iterator, List, Optional, Tuple

import numpy as np

from edp_mx.data.synthetic.grammar import Grammar, carriers, english, load_grammar
from edp_mx.data.synthetic.noise import Noise, Row
from edp_mx.data.synthetic.values import Sources
from edp_mx.data.utterance import Utterance
from edp_mx.runtime.files import PathLike, whole_file

BLOCK = 10_000
VOWEL_AFTER_A = re.compile(r"\ba (?=(?!one\b|uni|use|eu)[aeiou]|8|11\b|18\b)")


class Generator:
    """Makes the blocks of one stand-in."""

    def __init__(self, grammar: Grammar) -> None:
        self._carriers, self._cdf = carriers(grammar)
        sources = Sources(english().recipes)
        self._slots = {name: sources.build(recipe) for name, recipe in grammar.slots.items()}
        self._noise = Noise(grammar, sources)

    def block(self, rng: np.random.Generator) -> List[Row]:
        """Draw one block of rows [text, tags, intent]."""
        at = np.searchsorted(self._cdf, rng.random(BLOCK), side="right")
        chosen = [self._carriers[index] for index in at.tolist()]
        counts = Counter(name for carrier in chosen for name in carrier.slots)
        values = {name: iter(slot.draw(rng, counts[name])) for name, slot in self._slots.items()}
        rows: List[Row] = []
        for carrier in chosen:
            filled = tuple([next(values[name]) for name in carrier.slots])
            tags = [span_tags(name, value.count(" ")) for name, value in zip(carrier.slots, filled)]
            text = carrier.text % filled
            if "a " in text:
                text = VOWEL_AFTER_A.sub("an ", text)
            rows.append([text, carrier.tags % tuple(tags), carrier.intent])
        self._noise.add(rows, rng)
        return rows


@lru_cache(maxsize=None)
def span_tags(name: str, spaces: int) -> str:
    """Return the BIO tags of a span by its slot and the number of spaces in its text."""
    name = name.split(".")[0]
    return f"B-{name}" + f" I-{name}" * spaces


def _blocks(grammar: Grammar, *, size: int, seed: int) -> Iterator[Tuple[int, List[Row]]]:
    """Yield the rows of a corpus, block by block, each with the number of its first row."""
    key = int.from_bytes(hashlib.sha256(grammar.name.encode()).digest()[:4], "big")
    generator = Generator(grammar)
    for start in range(0, size, BLOCK):
        sequence = np.random.SeedSequence([seed, key, start // BLOCK])
        rng = np.random.Generator(np.random.SFC64(sequence))
        yield start, generator.block(rng)[: size - start]


def make_utterances(corpus: str, *, size: int, seed: int) -> Iterator[Utterance]:
    """Draw utterances of a synthetic corpus lazily; the first n are the same for every size.

    Raises:
        UserError: an unknown corpus.

    Example:
        >>> next(make_utterances("communication", size=1, seed=1)).id
        'communication/000000'
    """
    grammar = load_grammar(corpus)
    return (
        Utterance(tuple(text.split(" ")), tuple(tags.split(" ")), intent, f"{corpus}/{number:06d}")
        for start, rows in _blocks(grammar, size=size, seed=seed)
        for number, (text, tags, intent) in enumerate(rows, start)
    )


def write_corpus(
    corpus: str,
    *,
    size: int,
    seed: int,
    out: PathLike,
    progress: Optional[Callable[[int], object]] = None,
) -> str:
    """Stream the utterances of `make_utterances` to a JSON-lines file, whole or not there.

    Returns: the SHA-256 of the file's content. `progress` is called with the size of each block.
    """
    grammar = load_grammar(corpus)
    digest = hashlib.sha256()
    with whole_file(out) as file:
        for start, rows in _blocks(grammar, size=size, seed=seed):
            chunk = "".join(
                [_json_line(corpus, number, row) for number, row in enumerate(rows, start)]
            ).encode("utf-8")
            digest.update(chunk)
            file.write(chunk)
            if progress is not None:
                progress(len(rows))
    return digest.hexdigest()


def _json_line(corpus: str, number: int, row: Row) -> str:
    """Make a line as `readers.json_lines` reads it; no word of a grammar needs escaping."""
    text, tags, intent = row
    tokens, slots = text.replace(" ", '", "'), tags.replace(" ", '", "')
    return (
        f'{{"tokens": ["{tokens}"], "slots": ["{slots}"], "intent": "{intent}", '
        f'"id": "{corpus}/{number:06d}"}}\n'
    )
