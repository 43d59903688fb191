"""The noise of real logs: openings, asides, slips, lost words, mislabels.

A row is a list [text, tags, intent]; text and tags are joined by single spaces and stay aligned.
"""

from __future__ import annotations

from typing import Dict, List, Tuple

import numpy as np

from edp_mx.data.synthetic.grammar import Grammar, english
from edp_mx.data.synthetic.values import Composed, Sources
from edp_mx.metrics.spans import spans_of

Row = List[str]

KEY_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
NEIGHBOURS = {
    letter: row[max(0, at - 1) : at] + row[at + 1 : at + 2]
    for row in KEY_ROWS
    for at, letter in enumerate(row)
}


def is_command(row: Row) -> bool:
    """Return whether "can you" may stand before the utterance."""
    return row[1].startswith("O") and row[0].split(" ", 1)[0] not in english().question_words


def splice(row: Row, start: int, stop: int, words: str = "") -> None:
    """Put words that are no slot in place of those from `start` up to `stop`."""
    tokens, tags, said = row[0].split(), row[1].split(), words.split()
    tokens[start:stop], tags[start:stop] = said, ["O"] * len(said)
    row[:2] = " ".join(tokens), " ".join(tags)


def append(row: Row, words: str) -> None:
    """Put words that are no slot after the utterance."""
    end = row[0].count(" ") + 1
    splice(row, end, end, words)


def cut_off(row: Row, chance: float) -> None:
    """Cut off at most the last third of an utterance of four words or more."""
    count = row[0].count(" ") + 1
    if count >= 4:
        splice(row, count - 1 - int(chance * (count // 3)), count)


def fill(row: Row, filler: str, chance: float) -> None:
    """Put a filler between two words, never inside a span."""
    tags = row[1].split()
    at = int(chance * (len(tags) + 1))
    if not "".join(tags[at : at + 1]).startswith("I-"):
        splice(row, at, at, filler)


def slip(row: Row, chances: np.ndarray) -> None:
    """Swap, lose, double or mistype a letter of one word, or replace the word by a homophone."""
    tokens = row[0].split()
    at = int(chances[0] * len(tokens))
    word = tokens[at]
    homophones = english().homophones
    if word in homophones:
        tokens[at] = homophones[word]
    elif len(word) >= 4 and word.isalpha():
        letter = 1 + int(chances[1] * (len(word) - 2))
        kind = int(chances[2] * 4)
        own, following = word[letter], word[letter + 1]
        typed = (following + own, following, own + own + following, NEIGHBOURS[own][0] + following)
        tokens[at] = word[:letter] + typed[kind] + word[letter + 2 :]
    row[0] = " ".join(tokens)


def drop_word(row: Row, chance: float) -> None:
    """Drop a small word of the carrier."""
    tokens, tags = row[0].split(), row[1].split()
    droppable = english().droppable
    small = [at for at, word in enumerate(tokens) if word in droppable and tags[at] == "O"]
    if small and len(tokens) > 2:
        at = small[int(chance * len(small))]
        splice(row, at, at + 1)


def mislabel(row: Row, siblings: Dict[str, str], chance: float) -> None:
    """Label a span as a doubtful annotator would: as a sibling type, or with its determiner."""
    tokens, tags = row[0].split(), row[1].split()
    spans = spans_of(tags)
    if not spans:
        return
    name, at, end = spans[int(chance * len(spans))]
    if at and tokens[at - 1] in ("the", "my", "a") and tags[at - 1] == "O":
        tags[at - 1 : at + 1] = [f"B-{name}", f"I-{name}"]
    elif name in siblings:
        tags[at:end] = [f"{tag[:2]}{siblings[name]}" for tag in tags[at:end]]
    row[1] = " ".join(tags)


class Noise:
    """Adds the noise of a stand-in to blocks of rows, in place."""

    def __init__(self, grammar: Grammar, sources: Sources) -> None:
        self._asides = Composed(grammar.asides, sources)
        self._rates = grammar.rates
        both_ways = grammar.siblings + tuple((b, a) for a, b in grammar.siblings)
        self._siblings = dict(reversed(both_ways))
        self._phrases = {name: sources.build(recipe) for name, recipe in english().phrases.items()}

    def add(self, rows: List[Row], rng: np.random.Generator) -> None:
        """Let each kind of noise strike its own random part of the rows, mislabels first."""
        rates = self._rates
        for row, chance in struck(rows, rates.mislabelled, rng):
            mislabel(row, self._siblings, chance[0])
        for row, chance in struck(rows, rates.dropped_word, rng):
            drop_word(row, chance[0])
        for row, chance in struck(rows, rates.cut_off, rng):
            cut_off(row, chance[0])
        chosen = [row for row, _ in struck(rows, rates.aside, rng)]
        for row, aside in zip(chosen, self._asides.draw(rng, len(chosen))):
            append(row, aside)
        for row, chances in struck(rows, rates.slip, rng):
            slip(row, chances)
        for rate, kind in ((rates.opening, "opening"), (rates.closing, "closing")):
            chosen = [row for row, _ in struck(rows, rate, rng)]
            commands = self._phrases[kind].draw(rng, len(chosen))
            questions = self._phrases[f"question_{kind}"].draw(rng, len(chosen))
            for row, command, question in zip(chosen, commands, questions):
                said = command if is_command(row) else question
                splice(row, 0, 0, said) if kind == "opening" else append(row, said)
        filled = struck(rows, rates.filler, rng)
        fillers = self._phrases["filler"].draw(rng, len(filled))
        for (row, chances), filler in zip(filled, fillers):
            fill(row, filler, chances[0])


def struck(rows: List[Row], rate: float, rng: np.random.Generator) -> List[Tuple[Row, np.ndarray]]:
    """Return the rows that a kind of noise strikes, each with three uniform numbers."""
    chosen = np.flatnonzero(rng.random(len(rows)) < rate)
    return list(zip([rows[at] for at in chosen], rng.random((len(chosen), 3))))
