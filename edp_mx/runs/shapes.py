"""What the files of a run are made of, checked before anything is taken from them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Dict, Tuple

from edp_mx.errors import UserError
from edp_mx.runtime.limits import MOST_COUNTED

# A word of `_IS`, {key: shape} of the keys that are there, or [shape of each item].
Shape = Any


def _is_number(value: Any) -> bool:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_number and math.isfinite(value) and abs(value) < 1e300


def _is_count(value: Any) -> bool:
    return _is_number(value) and isinstance(value, int) and 0 <= value <= MOST_COUNTED


_IS = {
    "a number": _is_number,
    "a number or null": lambda value: value is None or _is_number(value),
    "a whole number": _is_count,
    "a whole number or null": lambda value: value is None or _is_count(value),
    "a whole number from 1": lambda value: _is_count(value) and value > 0,
    "a text": lambda value: isinstance(value, str),
    "a text or null": lambda value: value is None or isinstance(value, str),
    "an object": lambda value: isinstance(value, dict),
    "an object or null": lambda value: value is None or isinstance(value, dict),
}

_SCORES = {"ser": "a number", "intent_accuracy": "a number", "slot_f1": "a number"}
_BOUND = {
    "epsilon": "a number or null",
    "log10_epsilon": "a number or null",
    "conditions": ["a text"],
}
_PARTS = {part: ["a text"] for part in ("train", "validation", "test")}
_BASELINE = {"intent": "a text", "ser": "a number", "intent_accuracy": "a number"}
SHAPES: Dict[str, Shape] = {
    "results": {"test": _SCORES, "baseline": _BASELINE, "training_seconds": "a number"},
    "environment": {
        "num_workers": "a whole number from 1",
        "started": "a text",
        "fingerprints": "an object or null",
    },
    "privacy": {
        "mechanism": "a text",
        "delta": "a number",
        "num_examples": "a whole number or null",
        "steps": "a whole number",
        "epochs": "a whole number",
        "as_published": _BOUND,
        "holds": _BOUND,
        "holds_if": _BOUND,
    },
    "split": _PARTS,
    "vocabulary": {
        **{name: ["a text"] for name in ("words", "characters", "slots", "intents")},
        "pieces": ["a text"],
        "word_source": "a text",
        "label_source": "a text",
        "template": "a text",
    },
    "layers": ["an object"],
    "attack_record": {
        "name": "a text",
        "attack": "a text",
        "attacked_run": "a text",
        "success": "an object",
    },
    "record": {
        "name": "a text",
        "hash": "a text or null",
        "date": "a text",
        "settings": "an object",
        "test": _SCORES,
        "holds": _BOUND,
        "as_published": _BOUND,
        "holds_if": _BOUND,
        "n": "a whole number or null",
        "epochs": "a whole number",
        "seconds": "a number",
        "workers": "a whole number",
    },
}
SETTINGS: Shape = {
    "name": "a text",
    "data": {"corpus": "a text"},
    "model": {"family": "a text"},
    "training": {"epochs": "a whole number from 1", "checkpoint": "a text"},
    "privacy": {"mechanism": "a text", "target_epsilon": "a number or null"},
    "pretraining": "an object",
}
_MEASURED = {
    "epoch": "a whole number",
    **dict.fromkeys(("ser", "intent_accuracy", "intent_error", "slot_f1", "seconds"), "a number"),
}


class Written(dict):
    """An object of a file, which says in a sentence that a key is missing."""

    path: Any = ""

    def __missing__(self, key: str) -> Any:
        raise UserError(
            f"{self.path} lacks {key!r}; it was cut or changed, or is of another version"
        )


def check_file(name: str, value: Any, path: Path) -> Any:
    """Return the content of `<name>.json`, with `Written` objects; refuse what no run writes."""
    return _written(check(value, SHAPES.get(name, {}), path), path)


def check_settings(value: Any, path: Path) -> Dict[str, Any]:
    """Return the content of a run's `config.yaml`."""
    return _written(check(value, SETTINGS, path), path)


def check_epoch(row: Any, place: str) -> Dict[str, Any]:
    """Return a line of `metrics.jsonl`, which has numbers only."""
    check(row, _MEASURED, place)
    for key, value in row.items():
        check(value, "a number or null", place, (key,))
    return _written(row, place)


def check(value: Any, shape: Shape, path: Any, place: Tuple[str, ...] = ()) -> Any:
    """Return a value; refuse it if it does not have the shape, by the keys that lead there."""
    if isinstance(shape, str):
        if not _IS[shape](value):
            _refuse(path, place, value, shape)
    elif isinstance(shape, list):
        if not isinstance(value, list):
            _refuse(path, place, value, "a list")
        for number, item in enumerate(value):
            check(item, shape[0], path, (*place, str(number)))
    elif not isinstance(value, dict):
        _refuse(path, place, value, "an object")
    else:
        for key in shape.keys() & value.keys():
            check(value[key], shape[key], path, (*place, key))
    return value


def _written(value: Any, path: Any) -> Any:
    if isinstance(value, dict):
        found = Written({key: _written(inner, path) for key, inner in value.items()})
        found.path = path
        return found
    if isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value):
        return [_written(item, path) for item in value]
    return value


def _refuse(path: Any, place: Tuple[str, ...], value: Any, wanted: str) -> None:
    what = ".".join(place) or "it"
    said = repr(value) if isinstance(value, (int, float, str, type(None))) else "something else"
    raise UserError(f"{path}: {what} is {said}, not {wanted}; it was damaged or changed")
