"""What all stand-ins share: the values that fill their slots and what people say around them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any, Dict, FrozenSet, List, Mapping, Sequence

import numpy as np
import yaml

from edp_mx.data.synthetic.values import Pool, Recipe, Words, pairs, read_recipes

ENGLISH = Path(__file__).with_name("english.yaml")
_SHUFFLE_SEED = 20240229


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
    tree = read_yaml(ENGLISH)
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


def read_yaml(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


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
