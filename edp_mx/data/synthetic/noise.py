"""What goes wrong between a grammar and a log: openings, asides, slips, lost words, mislabels.

A row is a list [text, tags, intent]; text and tags are joined by single spaces and stay aligned.
"""

from __future__ import annotations

from typing import Dict, List, Tuple

import numpy as np

from edp_mx.data.synthetic.grammar import Corpus, pairs
from edp_mx.data.synthetic.values import Composed, Sources, read_recipes
from edp_mx.data.synthetic.words import words

Row = List[str]

PHRASES = read_recipes("""
opening = please, can you, could you, um, hey, can you please, okay, uh, would you, so,
    i need you to, could you please, hi, i want you to, now, go ahead and
question_opening = um, hey, so, okay, uh, hi, and, sorry, well, er
closing = please, now, for me, thanks, thank you, right now, right away, okay
question_closing = please, thanks, thank you, okay, right now
filler = um, uh, like, er, you know, well, hmm
""")
# What begins so, or with a slot, is no command: "can you what is on" is nobody's English.
QUESTION_WORDS = frozenset(
    words("""
    what who whose when where how why which is are was do does did am i i'm i've i'd have has can
    could will any anyone it my there that the no let more thumbs next previous subtitles audio
    captions only episode watch don't
    """)
)
DROPPABLE = frozenset(words("the a an to my of for on in at is me up do with"))
HOMOPHONES = dict(
    pairs("""
    to two, for four, two to, four for, eight ate, their there, your you're, our are, by buy,
    new knew, right write, one won, know no, week weak, hour our, male mail
    """)
)
KEY_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
NEIGHBOURS = {
    letter: row[max(0, at - 1) : at] + row[at + 1 : at + 2]
    for row in KEY_ROWS
    for at, letter in enumerate(row)
}


def is_command(row: Row) -> bool:
    """True if the utterance begins as a command, so that "can you" may stand before it."""
    return row[1].startswith("O") and row[0].split(" ", 1)[0] not in QUESTION_WORDS


def open_with(row: Row, command: str, question: str) -> None:
    """Puts a politeness or a filler before the utterance."""
    opening = command if is_command(row) else question
    row[0] = f"{opening} {row[0]}"
    row[1] = "O " * (opening.count(" ") + 1) + row[1]


def close_with(row: Row, command: str, question: str) -> None:
    """Puts a politeness after the utterance."""
    append(row, command if is_command(row) else question)


def append(row: Row, words: str) -> None:
    """Puts words that are no slot after the utterance."""
    row[0] = f"{row[0]} {words}"
    row[1] += " O" * (words.count(" ") + 1)


def cut_off(row: Row, chance: float) -> None:
    """Loses the last third, or less, of an utterance of four words or more."""
    tokens, tags = row[0].split(), row[1].split()
    lost = 1 + int(chance * (len(tokens) // 3)) if len(tokens) >= 4 else 0
    row[0] = " ".join(tokens[: len(tokens) - lost])
    row[1] = " ".join(tags[: len(tags) - lost])


def fill(row: Row, filler: str, chance: float) -> None:
    """Puts a filler between two words, never inside a span."""
    tokens, tags = row[0].split(), row[1].split()
    at = int(chance * (len(tokens) + 1))
    if at < len(tags) and tags[at].startswith("I-"):
        return
    said = filler.split()
    row[0] = " ".join(tokens[:at] + said + tokens[at:])
    row[1] = " ".join(tags[:at] + ["O"] * len(said) + tags[at:])


def slip(row: Row, chances: np.ndarray) -> None:
    """Swaps, loses, doubles or mistypes a letter of one word, or hears it as another."""
    tokens = row[0].split()
    at = int(chances[0] * len(tokens))
    word = tokens[at]
    if word in HOMOPHONES:
        tokens[at] = HOMOPHONES[word]
    elif len(word) >= 4 and word.isalpha():
        letter = 1 + int(chances[1] * (len(word) - 2))
        kind = int(chances[2] * 4)
        if kind == 0:
            middle = word[letter + 1] + word[letter]
            tokens[at] = word[:letter] + middle + word[letter + 2 :]
        elif kind == 1:
            tokens[at] = word[:letter] + word[letter + 1 :]
        elif kind == 2:
            tokens[at] = word[:letter] + word[letter] + word[letter:]
        else:
            tokens[at] = word[:letter] + NEIGHBOURS[word[letter]][0] + word[letter + 1 :]
    row[0] = " ".join(tokens)


def drop_word(row: Row, chance: float) -> None:
    """Loses a small word of the carrier."""
    tokens, tags = row[0].split(), row[1].split()
    small = [at for at, word in enumerate(tokens) if word in DROPPABLE and tags[at] == "O"]
    if small and len(tokens) > 2:
        at = small[int(chance * len(small))]
        row[0] = " ".join(tokens[:at] + tokens[at + 1 :])
        row[1] = " ".join(tags[:at] + tags[at + 1 :])


def mislabel(row: Row, siblings: Dict[str, str], chance: float) -> None:
    """An annotator's doubt: a sibling's slot type, or a span with its determiner."""
    tokens, tags = row[0].split(), row[1].split()
    starts = [at for at, tag in enumerate(tags) if tag.startswith("B-")]
    if not starts:
        return
    at = starts[int(chance * len(starts))]
    name = tags[at][2:]
    if at and tokens[at - 1] in ("the", "my", "a") and tags[at - 1] == "O":
        tags[at - 1 : at + 1] = [f"B-{name}", f"I-{name}"]
    elif name in siblings:
        end = at + 1
        while end < len(tags) and tags[end].startswith("I-"):
            end += 1
        tags[at:end] = [f"{tag[:2]}{siblings[name]}" for tag in tags[at:end]]
    row[1] = " ".join(tags)


class Noise:
    """Adds a corpus' noise to a block of rows, in place."""

    def __init__(self, corpus: Corpus, sources: Sources) -> None:
        self._asides = Composed(corpus.asides, sources)
        self._rates = corpus.rates
        both_ways = corpus.siblings + tuple((b, a) for a, b in corpus.siblings)
        self._siblings = dict(reversed(both_ways))
        self._phrases = {name: sources.build(recipe) for name, recipe in PHRASES.items()}

    def add(self, rows: List[Row], rng: np.random.Generator) -> None:
        """Each kind strikes its own random part of the rows, mislabels first."""
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
        for rate, kind, put in (
            (rates.opening, "opening", open_with),
            (rates.closing, "closing", close_with),
        ):
            chosen = [row for row, _ in struck(rows, rate, rng)]
            commands = self._phrases[kind].draw(rng, len(chosen))
            questions = self._phrases[f"question_{kind}"].draw(rng, len(chosen))
            for row, command, question in zip(chosen, commands, questions):
                put(row, command, question)
        filled = struck(rows, rates.filler, rng)
        fillers = self._phrases["filler"].draw(rng, len(filled))
        for (row, chances), filler in zip(filled, fillers):
            fill(row, filler, chances[0])


def struck(rows: List[Row], rate: float, rng: np.random.Generator) -> List[Tuple[Row, np.ndarray]]:
    """The rows that a kind of noise strikes, each with three uniform numbers."""
    chosen = np.flatnonzero(rng.random(len(rows)) < rate)
    return list(zip([rows[at] for at in chosen], rng.random((len(chosen), 3))))
