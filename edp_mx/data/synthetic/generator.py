"""Draws utterances from a grammar in blocks: the same seed gives the same bytes.

Each block of 10,000 has a random stream of its own, seeded by (seed, corpus, block), so the first
n utterances are the same whatever the size, and memory does not grow with the size.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from functools import lru_cache
from typing import Iterator, List

import numpy as np

from edp_mx.data.synthetic.grammar import Grammar, carriers, english, load_grammar
from edp_mx.data.synthetic.noise import Noise, Row
from edp_mx.data.synthetic.values import Sources
from edp_mx.data.utterance import Utterance

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


def make_utterances(corpus: str, *, size: int, seed: int) -> Iterator[Utterance]:
    """Draw utterances of a stand-in, of `STANDINS`; the first n are the same for every size.

    Example:
        >>> next(make_utterances("communication", size=1, seed=1)).id
        'communication/000000'
    """
    key = int.from_bytes(hashlib.sha256(corpus.encode()).digest()[:4], "big")
    generator = Generator(load_grammar(corpus))
    for start in range(0, size, BLOCK):
        sequence = np.random.SeedSequence([seed, key, start // BLOCK])
        rows = generator.block(np.random.Generator(np.random.SFC64(sequence)))[: size - start]
        for number, (text, tags, intent) in enumerate(rows, start):
            tokens, slots = tuple(text.split(" ")), tuple(tags.split(" "))
            yield Utterance(tokens, slots, intent, f"{corpus}/{number:06d}")
