"""A corpus' grammar: intents, each with carriers such as "(call|ring) {contact_name}"."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Dict, List, Mapping, Tuple

import numpy as np

from edp_mx.data.synthetic.values import Recipe, cumulative, zipf_cdf

SLOT = re.compile(r"\{([\w.]+)\}")
CHOICE = re.compile(r"\(([^()]*)\)")


@dataclass(frozen=True)
class NoiseRates:
    """How often each kind of noise strikes an utterance; see `edp_mx.data.synthetic.noise`."""

    mislabelled: float = 0.08
    dropped_word: float = 0.08
    cut_off: float = 0.05
    aside: float = 0.10
    slip: float = 0.12
    opening: float = 0.18
    closing: float = 0.10
    filler: float = 0.06


@dataclass(frozen=True)
class Corpus:
    """One corpus as data.

    `intents`: carriers by intent, one a line; intents and carriers stand from the commonest to
    the rarest, and so do the choices "(a|b|)" within a carrier; the k-th has a weight of
    (k + 2)^−exponent.
    `slots`: patterns of values by slot type; "date.past" is the slot type "date" with values of
    its own, for carriers that need them. `siblings`: slot types that annotators mix up.
    `asides`: clauses that say nothing to the task, and whose names and dates are no slots.
    """

    name: str
    intents: Mapping[str, str]
    slots: Mapping[str, Recipe]
    siblings: Tuple[Tuple[str, str], ...]
    asides: Mapping[str, float]
    rates: NoiseRates = NoiseRates()
    intent_exponent: float = 1.1
    carrier_exponent: float = 0.5


@dataclass(frozen=True)
class Carrier:
    """A carrier without choices; `text` and `tags` hold a %s for each of `slots`."""

    text: str
    tags: str
    slots: Tuple[str, ...]
    intent: str


def pairs(text: str) -> Tuple[Tuple[str, str], ...]:
    """Pairs of words between commas."""
    split = [part.split() for part in text.split(",")]
    return tuple((first, second) for first, second in split)


def expand(line: str) -> Dict[str, float]:
    """All readings of a carrier's choices with their probabilities.

    Example:
        >>> list(expand("(call|ring) {contact_name}"))
        ['call {contact_name}', 'ring {contact_name}']
    """
    choice = CHOICE.search(line)
    if choice is None:
        return {" ".join(line.split()): 1.0}
    options = choice.group(1).split("|")
    readings: Dict[str, float] = {}
    for option, share in zip(options, np.diff(zipf_cdf(len(options), 1.0), prepend=0.0)):
        rest = expand(line[: choice.start()] + option + line[choice.end() :])
        for reading, probability in rest.items():
            readings[reading] = readings.get(reading, 0.0) + probability * float(share)
    return readings


def carrier(reading: str, intent: str) -> Carrier:
    """Splits one reading into its text and its tags."""
    tokens = reading.split()
    tags = ["%s" if SLOT.search(token) else "O" for token in tokens]
    slots = tuple(SLOT.findall(reading))
    return Carrier(SLOT.sub("%s", reading), " ".join(tags), slots, intent)


def carriers(corpus: Corpus) -> Tuple[List[Carrier], np.ndarray]:
    """All carriers of a corpus without choices, with their cumulative probabilities."""
    found: List[Carrier] = []
    weights: List[float] = []
    intent_shares = np.diff(zipf_cdf(len(corpus.intents), corpus.intent_exponent), prepend=0.0)
    for (intent, block), intent_share in zip(corpus.intents.items(), intent_shares):
        lines = [line for line in block.splitlines() if line.strip()]
        shares = np.diff(zipf_cdf(len(lines), corpus.carrier_exponent), prepend=0.0)
        for line, share in zip(lines, shares):
            for reading, probability in expand(line).items():
                found.append(carrier(reading, intent))
                weights.append(float(intent_share * share) * probability)
    return found, cumulative(weights)
