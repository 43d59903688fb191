"""Draws utterances from a corpus' grammar in blocks: the same seed gives the same bytes.

Each block of 10,000 has a random stream of its own, seeded by (seed, corpus, block), so the first
n utterances are the same whatever the size, and memory does not grow with the size.
"""

from __future__ import annotations

import hashlib
import re
from typing import Callable, Dict, Iterator, List, Mapping, Optional, Tuple

import numpy as np

from edp_mx.data.synthetic import communication, health, video
from edp_mx.data.synthetic.catalogues import RECIPES
from edp_mx.data.synthetic.grammar import Corpus, carriers
from edp_mx.data.synthetic.noise import Noise, Row
from edp_mx.data.synthetic.values import Sources
from edp_mx.data.utterance import Utterance
from edp_mx.errors import UserError
from edp_mx.runtime.files import PathLike, whole_file

CORPORA: Mapping[str, Corpus] = {
    corpus.name: corpus for corpus in (communication.CORPUS, health.CORPUS, video.CORPUS)
}
BLOCK = 10_000
VOWEL_AFTER_A = re.compile(r"\ba (?=(?!one\b|uni|use|eu)[aeiou]|8|11\b|18\b)")


class Generator:
    """Makes the blocks of one corpus."""

    def __init__(self, corpus: Corpus) -> None:
        self._carriers, self._cdf = carriers(corpus)
        sources = Sources(RECIPES)
        self._slots = {name: sources.build(recipe) for name, recipe in corpus.slots.items()}
        self._tags = {name: SpanTags(name.split(".")[0]) for name in corpus.slots}
        self._noise = Noise(corpus, sources)

    def block(self, rng: np.random.Generator) -> List[Row]:
        """One block of rows [text, tags, intent]."""
        at = np.searchsorted(self._cdf, rng.random(BLOCK), side="right")
        chosen = [self._carriers[index] for index in at.tolist()]
        counts = dict.fromkeys(self._slots, 0)
        for carrier in chosen:
            for name in carrier.slots:
                counts[name] += 1
        values = {name: iter(self._slots[name].draw(rng, n)) for name, n in counts.items()}
        rows: List[Row] = []
        for carrier in chosen:
            filled = tuple([next(values[name]) for name in carrier.slots])
            tags = [
                self._tags[name][value.count(" ")] for name, value in zip(carrier.slots, filled)
            ]
            text = carrier.text % filled
            if "a " in text:
                text = VOWEL_AFTER_A.sub("an ", text)
            rows.append([text, carrier.tags % tuple(tags), carrier.intent])
        self._noise.add(rows, rng)
        return rows


class SpanTags(Dict[int, str]):
    """The BIO tags of a span by the number of spaces in its text."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    def __missing__(self, spaces: int) -> str:
        self[spaces] = f"B-{self._name}" + f" I-{self._name}" * spaces
        return self[spaces]


def check_request(name: str, *, size: int, seed: int) -> Corpus:
    """The grammar of that name.

    Raises:
        UserError: there is none, or no utterances can be made so.
    """
    if name not in CORPORA:
        raise UserError(f"no synthetic corpus {name!r}; there are {', '.join(CORPORA)}")
    if size < 1:
        raise UserError(f"the size must be at least 1, but it is {size}")
    if seed < 0:
        raise UserError(f"the seed must not be negative, but it is {seed}")
    return CORPORA[name]


def blocks(corpus: Corpus, *, size: int, seed: int) -> Iterator[Tuple[int, List[Row]]]:
    """The rows of a corpus, block by block, each with the number of its first row."""
    key = int.from_bytes(hashlib.sha256(corpus.name.encode()).digest()[:4], "big")
    generator = Generator(corpus)
    for start in range(0, size, BLOCK):
        sequence = np.random.SeedSequence([seed, key, start // BLOCK])
        rng = np.random.Generator(np.random.SFC64(sequence))
        yield start, generator.block(rng)[: size - start]


def make_utterances(corpus: str, *, size: int, seed: int) -> Iterator[Utterance]:
    """Utterances of a synthetic corpus, drawn lazily.

    Args:
        corpus: "communication", "health" or "video".
        size: how many; the first n are the same whatever the size.
        seed: what they are drawn by; it does not change the catalogues, so two seeds give two
            samples of one world.

    Raises:
        UserError: an unknown corpus, a size below 1 or a negative seed.

    Example:
        >>> first = next(make_utterances("communication", size=1, seed=1))
        >>> first.id, len(first.tokens) == len(first.slots)
        ('communication/000000', True)
    """
    grammar = check_request(corpus, size=size, seed=seed)
    return (
        Utterance(tuple(text.split(" ")), tuple(tags.split(" ")), intent, f"{corpus}/{number:06d}")
        for start, rows in blocks(grammar, size=size, seed=seed)
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
    """Streams the utterances of `make_utterances` to a JSON-lines file at constant memory.

    Args:
        corpus: "communication", "health" or "video".
        size: number of utterances.
        seed: as for `make_utterances`.
        out: the file; it appears whole or not at all.
        progress: called after each block with the number of utterances just written.

    Returns:
        The SHA-256 of the file's content, in hexadecimal.

    Raises:
        UserError: as for `make_utterances`, or the file cannot be written.
    """
    grammar = check_request(corpus, size=size, seed=seed)
    digest = hashlib.sha256()
    with whole_file(out) as file:
        for start, rows in blocks(grammar, size=size, seed=seed):
            chunk = "".join(
                [json_line(corpus, number, row) for number, row in enumerate(rows, start)]
            ).encode("utf-8")
            digest.update(chunk)
            file.write(chunk)
            if progress is not None:
                progress(len(rows))
    return digest.hexdigest()


def json_line(corpus: str, number: int, row: Row) -> str:
    """What `readers.write_jsonl` writes; no word of a grammar needs escaping, as a test holds."""
    text, tags, intent = row
    tokens, slots = text.replace(" ", '", "'), tags.replace(" ", '", "')
    return (
        f'{{"tokens": ["{tokens}"], "slots": ["{slots}"], "intent": "{intent}", '
        f'"id": "{corpus}/{number:06d}"}}\n'
    )
