"""Sources of slot values: Zipfian lists, mixtures of patterns, and pools of composed values."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Dict, List, Mapping, Sequence, Tuple, Union

import numpy as np

REFERENCE = re.compile(r"\{(\w+)\}")
ENTRY = re.compile(r"^\s*([\w.]+)\s*([:=~])\s", re.MULTILINE)
POOL_SEED = 7  # pools are the same whatever the corpus' seed: two corpora share their world


@dataclass(frozen=True)
class Words:
    """A list, most common first; the k-th (from 1) is drawn with a weight of (k + 2)^−exponent."""

    words: Sequence[str]
    exponent: float = 1.0

    @cached_property
    def _cdf(self) -> np.ndarray:
        return zipf_cdf(len(self.words), self.exponent)

    def draw(self, rng: np.random.Generator, count: int) -> List[str]:
        at = np.searchsorted(self._cdf, rng.random(count), side="right")
        return [self.words[index] for index in at.tolist()]


@dataclass(frozen=True)
class Pool:
    """A fixed list of up to `size` distinct values of a pattern: what people save or own."""

    pattern: str
    size: int
    exponent: float = 1.0


Recipe = Union[Words, Pool, Mapping[str, float]]  # the last: patterns with their weights


def pairs(text: str) -> Tuple[Tuple[str, str], ...]:
    split = [part.split() for part in text.split(",")]
    return tuple((first, second) for first, second in split)


def patterns(text: str) -> Dict[str, float]:
    """Return the patterns between bars, with their weights after a star (1 where there is none)."""
    parts = [part.partition("*") for part in text.split("|")]
    return {" ".join(form.split()): float(weight or 1) for form, _, weight in parts}


def read_recipes(text: str) -> Dict[str, Recipe]:
    """Return recipes by name, from a notation with three kinds of entry.

    `name: pattern *weight | pattern` composes; `name = a, b, c` lists values, most common first;
    `name ~ a, b, c` lists values that are equally common. A line that begins no entry continues the
    one before.
    """
    _, *entries = ENTRY.split(text)
    recipes: Dict[str, Recipe] = {}
    for name, kind, body in zip(entries[::3], entries[1::3], entries[2::3]):
        if kind == ":":
            recipes[name] = patterns(body)
        else:
            values = tuple(" ".join(value.split()) for value in body.split(","))
            recipes[name] = Words(values, 0.8 if kind == "=" else 0.0)
    return recipes


def zipf_cdf(count: int, exponent: float) -> np.ndarray:
    """Return the cumulative probabilities of `count` values, most common first."""
    weights = (np.arange(count) + 3.0) ** -exponent
    return cumulative(weights)


def cumulative(weights: Union[Sequence[float], np.ndarray]) -> np.ndarray:
    """Return cumulative probabilities; the last is exactly 1, above every draw."""
    sums = np.cumsum(weights)
    return sums / sums[-1]


class Composed:
    """Draws from weighted patterns such as "{first_name} {last_name}", each part on its own."""

    def __init__(self, patterns: Mapping[str, float], sources: Sources) -> None:
        self._cdf = cumulative(list(patterns.values()))
        self._forms = [REFERENCE.sub("%s", pattern) for pattern in patterns]
        self._parts = [[sources[part] for part in REFERENCE.findall(form)] for form in patterns]

    def draw(self, rng: np.random.Generator, count: int) -> List[str]:
        which = np.searchsorted(self._cdf, rng.random(count), side="right")
        values = np.empty(count, dtype=object)
        for index, (form, parts) in enumerate(zip(self._forms, self._parts)):
            rows = np.flatnonzero(which == index)
            if rows.size and parts:
                columns = [part.draw(rng, rows.size) for part in parts]
                values[rows] = list(map(form.__mod__, zip(*columns)))
            elif rows.size:
                values[rows] = form
        return values.tolist()


class Sources:
    """Builds the source of each recipe by name, once, on first use."""

    def __init__(self, recipes: Mapping[str, Recipe]) -> None:
        self._recipes = recipes
        self._built: Dict[str, Union[Words, Composed]] = {}

    def __getitem__(self, name: str) -> Union[Words, Composed]:
        if name not in self._built:
            self._built[name] = self.build(self._recipes[name])
        return self._built[name]

    def build(self, recipe: Recipe) -> Union[Words, Composed]:
        if isinstance(recipe, Words):
            return recipe
        if isinstance(recipe, Pool):
            rng = np.random.Generator(np.random.PCG64(POOL_SEED))
            drawn = Composed({recipe.pattern: 1.0}, self).draw(rng, recipe.size)
            return Words(list(dict.fromkeys(drawn)), recipe.exponent)
        return Composed(recipe, self)
