"""Inputs that reach a model without noise: their origin, and who declared them public."""

from __future__ import annotations

from pathlib import Path
from typing import Optional, Tuple

from edp_mx.config import ExperimentConfig
from edp_mx.data.labels import FROM, PUBLIC, source_of
from edp_mx.dp.accounting.coverage import Declaration
from edp_mx.runs.ancestors import Brought
from edp_mx.runtime.json_text import read_json

_INPUT = {"start": "start", "words": "vocabulary"}  # their names in privacy.assume_public


def declarations_of(config: ExperimentConfig, brought: Brought) -> Tuple[Declaration, ...]:
    """Return the inputs that reach the model without noise: words, labels, word vectors, start.

    Of files and folders only the names are said. What is drawn at random, or read from the private
    training part, is no declaration: the latter makes ε infinite.
    """
    label_words, vectors = getattr(config.model, "label_words", None), config.data.embeddings.path
    found = [("words", _words(config), False), ("labels", _labels(config), False)]
    if label_words is not None:
        found.append(("label words", f"declared public by the list {_name(label_words)}", False))
    if vectors is not None:
        found.append(
            ("word vectors", f"{_name(vectors)}, whose training text nobody here knows", True)
        )
    for of, said, is_own in brought.said:
        is_assumed = is_own and _INPUT[of] in config.privacy.assume_public
        by = ", declared public by privacy.assume_public" if is_assumed else ""
        found.append((of, f"{said}{by}", is_own is None))
    return tuple(Declaration(of, said, is_open) for of, said, is_open in found if said is not None)


def _words(config: ExperimentConfig) -> Optional[str]:
    source, path = config.data.vocabulary.source, config.data.vocabulary.path
    if source == "sample" and path is not None:
        return f"read from {_name(path)}, declared public by data.vocabulary"
    if source == "file":
        return f"declared public by the list {_name(path)} (data.vocabulary)"
    if source == "embeddings":
        return f"those of {_name(config.data.embeddings.path)}, declared public by data.vocabulary"
    return "those of what the model starts from" if source == "checkpoint" else None


def _labels(config: ExperimentConfig) -> Optional[str]:
    source, path = source_of(config.data.labels), config.data.labels.path
    if source == "sample" and path is not None:
        return f"read from {_name(path)}, declared public by data.labels"
    if source != "file":
        return None
    name, held = _name(path), read_json(str(path))
    if PUBLIC in held:
        return f"{held[PUBLIC]} (the list {name})"
    read = f"read from {held[FROM]}, " if FROM in held else ""
    how = f'the list {name}, whose line "private" was removed' if read else f"the list {name}"
    return f"{read}declared public by {how}"


def _name(path: Optional[str]) -> str:
    return Path(str(path)).name
