"""The grammar of a stand-in: its intents, each with carriers like "(call|ring) {contact_name}".

A stand-in is one file `grammars/<name>.yaml` with the keys

- `intents`: by intent its carriers, one per line. Intents and carriers are ordered from the
  most common to the rarest, and so are the choices "(a|b|)" within a carrier; the k-th (from 1)
  has a weight of (k + 2)^−exponent.
- `slots`: the values of each slot type, in the notation of `values.read_recipes`; they refer to
  each other's patterns and to `english.yaml`. "date.past" is the slot type "date" with values of
  its own, for carriers that need them.
- `siblings`: pairs of slot types that annotators mix up.
- `asides`: clauses that say nothing about the task, and whose names and dates are no slots.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any, Dict, FrozenSet, List, Mapping, Sequence, Tuple

import numpy as np
import yaml

from edp_mx.data.synthetic.values import (
    Pool,
    Recipe,
    Words,
    cumulative,
    pairs,
    patterns,
    read_recipes,
    zipf_cdf,
)

ENGLISH = Path(__file__).with_name("english.yaml")  # what all stand-ins share
FOLDER = Path(__file__).with_name("grammars")
STANDINS = tuple(sorted(path.stem for path in FOLDER.glob("*.yaml")))
SLOT = re.compile(r"\{([\w.]+)\}")
CHOICE = re.compile(r"\(([^()]*)\)")
_SHUFFLE_SEED = 20240229
_INTENT_EXPONENT, _CARRIER_EXPONENT, _CHOICE_EXPONENT = 1.1, 0.5, 1.0


@dataclass(frozen=True)
class English:
    """The content of `english.yaml`; `recipes` is what the patterns of a grammar refer to."""

    recipes: Mapping[str, Recipe]
    phrases: Mapping[str, Recipe]
    question_words: FrozenSet[str]
    droppable: FrozenSet[str]
    homophones: Mapping[str, str]


@lru_cache(maxsize=1)
def english() -> English:
    """Return the content of `english.yaml`, read at the first call."""
    tree = yaml.safe_load(ENGLISH.read_text("utf-8"))
    recipes: Dict[str, Recipe] = {}
    for group in tree["recipes"].values():
        recipes.update(read_recipes(group))
    parts = {name: text.split() for name, text in tree["parts"].items()}
    for name, entry in tree["lists"].items():
        recipes[name] = Words(_listed(entry, parts), entry["exponent"])
    recipes.update({name: Pool(**entry) for name, entry in tree["pools"].items()})
    return English(
        recipes=recipes,
        phrases=read_recipes(tree["phrases"]),
        question_words=frozenset(tree["question_words"].split()),
        droppable=frozenset(tree["droppable"].split()),
        homophones=dict(pairs(tree["homophones"])),
    )


def _listed(entry: Mapping[str, Any], parts: Mapping[str, Sequence[str]]) -> List[str]:
    """Return a list's words: written out, combined (in a fixed shuffled order), or numbers."""
    if "words" in entry:
        return list(entry["words"].split())
    if "combine" in entry:
        strings = map("".join, product(*(parts[name] for name in entry["combine"])))
        found = sorted(set(strings))
        generator = np.random.Generator(np.random.PCG64(_SHUFFLE_SEED))
        return [found[at] for at in np.argsort(generator.random(len(found))).tolist()]
    numbers: List[int] = []
    for span in entry["numbers"].split():
        first, last = map(int, span.split("-"))
        step = 1 if first < last else -1
        numbers += range(first, last + step, step)
    return list(map(str, numbers))


@dataclass(frozen=True)
class NoiseRates:
    """The probability of each kind of noise in an utterance; see `edp_mx.data.synthetic.noise`."""

    mislabelled: float = 0.08
    dropped_word: float = 0.08
    cut_off: float = 0.05
    aside: float = 0.10
    slip: float = 0.12
    opening: float = 0.18
    closing: float = 0.10
    filler: float = 0.06


@dataclass(frozen=True)
class Grammar:
    """A stand-in's grammar, as its file has it; `intents` holds the carriers of each intent."""

    intents: Mapping[str, str]
    slots: Mapping[str, Recipe]
    siblings: Tuple[Tuple[str, str], ...]
    asides: Mapping[str, float]
    rates: NoiseRates = NoiseRates()


def grammar_files(name: str) -> List[Tuple[str, Path]]:
    """Return the data files that decide what a stand-in says, each with a short name."""
    return [(path.name, path) for path in (FOLDER / f"{name}.yaml", ENGLISH)]


@lru_cache(maxsize=None)
def load_grammar(name: str) -> Grammar:
    tree = yaml.safe_load((FOLDER / f"{name}.yaml").read_text("utf-8"))
    return Grammar(
        intents=tree["intents"],
        slots=read_recipes(tree["slots"]),
        siblings=pairs(tree["siblings"]),
        asides=patterns(tree["asides"]),
    )


@dataclass(frozen=True)
class Carrier:
    """A carrier without choices; `text` and `tags` hold a %s for each of `slots`."""

    text: str
    tags: str
    slots: Tuple[str, ...]
    intent: str

    @classmethod
    def of(cls, reading: str, intent: str) -> Carrier:
        """Split one reading of a line into its text and its tags."""
        tags = ["%s" if SLOT.search(token) else "O" for token in reading.split()]
        return cls(SLOT.sub("%s", reading), " ".join(tags), tuple(SLOT.findall(reading)), intent)


def expand(line: str) -> Dict[str, float]:
    """Return all readings of a carrier like "(call|ring) {contact_name}", with probabilities."""
    choice = CHOICE.search(line)
    if choice is None:
        return {" ".join(line.split()): 1.0}
    options = choice.group(1).split("|")
    readings: Dict[str, float] = {}
    for option, share in zip(options, _shares(len(options), _CHOICE_EXPONENT)):
        rest = expand(line[: choice.start()] + option + line[choice.end() :])
        for reading, probability in rest.items():
            readings[reading] = readings.get(reading, 0.0) + probability * float(share)
    return readings


def carriers(grammar: Grammar) -> Tuple[List[Carrier], np.ndarray]:
    """Return all carriers without choices, with their cumulative probabilities."""
    found: List[Carrier] = []
    weights: List[float] = []
    intent_shares = _shares(len(grammar.intents), _INTENT_EXPONENT)
    for (intent, block), intent_share in zip(grammar.intents.items(), intent_shares):
        lines = [line for line in block.splitlines() if line.strip()]
        for line, share in zip(lines, _shares(len(lines), _CARRIER_EXPONENT)):
            for reading, probability in expand(line).items():
                found.append(Carrier.of(reading, intent))
                weights.append(float(intent_share * share) * probability)
    return found, cumulative(weights)


def _shares(count: int, exponent: float) -> np.ndarray:
    return np.diff(zipf_cdf(count, exponent), prepend=0.0)
