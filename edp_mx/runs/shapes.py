"""What the files of a run are made of, checked before anything is taken from them."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, Tuple

from edp_mx.dp.accounting.decay import KINDS
from edp_mx.dp.accounting.units import MECHANISMS
from edp_mx.errors import UserError
from edp_mx.runtime.limits import LEAST_DELTA, MOST_COUNTED

if TYPE_CHECKING:
    from edp_mx.tasks.task import Task

# A word of `_IS`; {key: shape} of the keys that are there, with "!" behind one that must be and
# "*" for all others; [shape of each item], of which there must be one if a 1 follows; or (shape,)
# of what may be null.
Shape = Any
_DAY = re.compile(r"(\d{4}-\d\d-\d\d)?")


def _is_number(value: Any) -> bool:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_number and math.isfinite(value) and abs(value) < 1e300


def _is_count(value: Any) -> bool:
    return _is_number(value) and isinstance(value, int) and 0 <= value <= MOST_COUNTED


def _is_setting(value: Any) -> bool:
    items = value if isinstance(value, list) else [value]
    return all(item is None or isinstance(item, (bool, str)) or _is_number(item) for item in items)


_MECHANISMS = ("none", *MECHANISMS)
_IS = {
    "a number": _is_number,
    "a number above 0": lambda value: _is_number(value) and value > 0,
    "a number, 0 or more": lambda value: _is_number(value) and value >= 0,
    "a probability": lambda value: _is_number(value) and LEAST_DELTA <= value <= 1,
    "a setting": _is_setting,
    "a day": lambda value: isinstance(value, str) and bool(_DAY.fullmatch(value)),
    f"one of {', '.join(_MECHANISMS)}": lambda value: value in _MECHANISMS,
    f"one of {', '.join(KINDS)}": lambda value: value in KINDS,
    "a whole number": _is_count,
    "a whole number from 1": lambda value: _is_count(value) and value > 0,
    "a text": lambda value: isinstance(value, str),
    "an object": lambda value: isinstance(value, dict),
}

_SCORES = {"*": "a number"}  # by the metrics of the task
_END = {"lines!": "a whole number from 1", "sha256!": "a text"}  # of a ledger
_BOUND = {
    "epsilon!": ("a number, 0 or more",),
    "log10_epsilon!": ("a number",),
    "reason": "a text",
    "conditions": ["a text"],
}
MACHINE = {
    **dict.fromkeys(("processor", "machine", "python"), ("a text",)),
    "cores": ("a whole number",),
    "packages": ({"*": "a text"},),
    "blas": ({"*": {"kernels!": ("a text",)}},),
}
_ESTIMATE = {"value!": "a number"}
# Those that reports take out of a record.
_SETTINGS_KEPT = {
    "training.seed": "a whole number",
    "training.epochs": "a whole number from 1",
    "training.batch_size": "a whole number from 1",
    "training.learning_rate": "a number above 0",
    "training.learning_rates.heads": ("a number above 0",),
    "privacy.micro_batches_per_worker": "a whole number from 1",
    "privacy.noise_multiplier": ("a number, 0 or more",),
    "privacy.max_grad_norm": "a number above 0",
    "privacy.decay.rate": "a number, 0 or more",
    "privacy.decay.kind": f"one of {', '.join(KINDS)}",
    "*": "a setting",
    **dict.fromkeys(("task", "privacy.adjacency", "privacy.sampler", "model.trained"), "a text"),
}
_PARTS = {part: ["a text"] for part in ("train", "validation", "test")}
_BASELINE = {"*": "a setting"}
SHAPES: Dict[str, Shape] = {
    "results": {"test": _SCORES, "baseline": _BASELINE, "training_seconds": "a number"},
    "environment": {
        "num_workers": "a whole number from 1",
        "started": "a text",
        "fingerprints": ("an object",),
    },
    "privacy": {
        "mechanism": "a text",
        "delta": "a number",
        "num_examples": ("a whole number",),
        "steps": "a whole number",
        "epochs": "a whole number",
        "as_published": _BOUND,
        "holds": _BOUND,
        "holds_if": _BOUND,
        "ledger_end": (_END,),
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
    "attack": {
        "attack!": "a text",
        "results!": [{"name!": "a text"}, 1],
        "facts!": "an object",
    },
    "attack_record": {
        "name!": "a text",
        "attack!": "a text",
        "attacked_run!": "a text",
        "run!": "a text",
        "success!": {"*": {"auc!": _ESTIMATE, "tpr_at_fpr!": {"0.01!": _ESTIMATE}}},
        "roc": {"fpr!": ["a number above 0", 1], "tpr!": {"*": ["a number"]}},
    },
    "record": {
        **dict.fromkeys(("name!", "corpus!", "family!"), "a text"),
        "hash!": ("a text",),
        "results_version!": ("a whole number",),
        "date!": "a day",
        "mechanism!": f"one of {', '.join(_MECHANISMS)}",
        "test!": _SCORES,
        "validation!": (_SCORES,),
        **dict.fromkeys(("as_published!", "holds!", "holds_if!"), _BOUND),
        "ledger_end": (_END,),
        "delta!": "a probability",
        "n!": "a whole number from 1",
        "epochs!": "a whole number",
        "steps!": "a whole number",
        "seconds!": "a number, 0 or more",
        "workers!": "a whole number from 1",
        "machine!": MACHINE,
        "corpus_files!": ({"key!": "a text", "digest!": "a text"},),
        "settings!": _SETTINGS_KEPT,
        "by_epoch": {"epoch!": ["a whole number"], "*": [("a number",)]},
    },
}
SETTINGS: Shape = {
    "name": "a text",
    "task": "a text",
    "data": {"corpus": "a text"},
    "model": {"family": "a text"},
    "training": {"epochs": "a whole number from 1", "checkpoint": "a text"},
    "privacy": {"mechanism": "a text", "target_epsilon": ("a number",)},
}
_MEASURED = {"epoch": "a whole number", "seconds": "a number"}


class Written(dict):
    """An object of a file, which says in a sentence that a key is missing."""

    path: Any = ""

    def __missing__(self, key: str) -> Any:
        raise UserError(_lacks(self.path, key))


def _lacks(path: Any, key: str) -> str:
    return f"{path} lacks {key!r}; it was cut or changed, or is of another version"


def check_file(name: str, value: Any, path: Any) -> Any:
    """Return the content of `<name>.json`, with `Written` objects; refuse what no run writes.

    Args:
        path: of the file, or of a line in one.
    """
    check(value, SHAPES.get(name, {}), path)
    if name == "record":
        from edp_mx.tasks.registry import task_of  # here, since few files have scores

        metrics = {f"{metric.key}!": "a number" for metric in task_of(value["settings"]).metrics}
        for part in ("test", "validation"):
            check(value[part], metrics if part == "test" else (metrics,), path, (part,))
        _refuse_uneven(value.get("by_epoch", {}), path, "by_epoch")
    elif name == "attack_record" and "roc" in value:
        _refuse_uneven({"fpr": value["roc"]["fpr"], **value["roc"]["tpr"]}, path, "roc")
    return _written(value, path)


def checked(value: Any, shape: Shape, path: Path) -> Any:
    """Return the content of a file, with `Written` objects; refuse it if it has another shape."""
    return _written(check(value, shape, path), path)


def _refuse_uneven(columns: Dict[str, Any], path: Any, place: str) -> None:
    """Refuse columns of different lengths."""
    if len(set(map(len, columns.values()))) > 1:
        raise UserError(f"{path}: the columns of {place} differ in length; it was cut or changed")


def check_settings(value: Any, path: Path) -> Dict[str, Any]:
    """Return the content of a run's `config.yaml`."""
    return checked(value, SETTINGS, path)


def check_epoch(row: Any, place: str, task: Task) -> Dict[str, Any]:
    """Return a line of `metrics.jsonl`, which has numbers only."""
    check(row, {**_MEASURED, **{metric.key: "a number" for metric in task.metrics}}, place)
    for key, value in row.items():
        check(value, ("a number",), place, (key,))
    return _written(row, place)


def check(value: Any, shape: Shape, path: Any, place: Tuple[str, ...] = ()) -> Any:
    """Return a value; refuse it if it does not have the shape, by the keys that lead there."""
    if isinstance(shape, str):
        if not _IS[shape](value):
            _refuse(path, place, value, shape)
    elif isinstance(shape, tuple):
        if value is not None:
            check(value, shape[0], path, place)
    elif isinstance(shape, list):
        if not isinstance(value, list) or len(value) < len(shape) - 1:
            _refuse(path, place, value, "a list" if len(shape) == 1 else "a list of one or more")
        for number, item in enumerate(value):
            check(item, shape[0], path, (*place, str(number)))
    elif not isinstance(value, dict):
        _refuse(path, place, value, "an object")
    else:
        _check_keys(value, shape, path, place)
    return value


def _check_keys(
    value: Dict[str, Any], shape: Dict[str, Shape], path: Any, place: Tuple[str, ...]
) -> None:
    """Check what an object has, and that it has what it must."""
    shapes = {key.rstrip("!"): inner for key, inner in shape.items()}
    for key, inner in value.items():
        wanted = shapes.get(key, shapes.get("*"))
        if wanted is not None:
            check(inner, wanted, path, (*place, key))
    for key in shape:
        if key.endswith("!") and key[:-1] not in value:
            raise UserError(_lacks(path, ".".join((*place, key[:-1]))))


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
