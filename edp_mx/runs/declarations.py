"""What a run takes as public, where it comes from, and who says that it is public."""

from __future__ import annotations

from pathlib import Path
from typing import List, Optional, Tuple

from edp_mx.accounting.coverage import Declaration
from edp_mx.config import ExperimentConfig
from edp_mx.data.labels import FROM, PUBLIC, source_of
from edp_mx.runs.ancestors import Brought
from edp_mx.runtime.json_text import read_json


def declarations_of(config: ExperimentConfig, brought: Brought) -> Tuple[Declaration, ...]:
    """Return what counts as public: words, labels, word vectors, and what the model starts from.

    Of files and folders only the names are said. What is drawn at random, or read from the private
    training part, is no declaration: the latter makes ε infinite.
    """
    found: List[Declaration] = []
    for of, said in (("words", _words(config)), ("labels", _labels(config))):
        if said is not None:
            found.append(Declaration(of, said))
    vectors = config.data.embeddings.path
    if vectors is not None:
        name = Path(vectors).name
        said = f"{name}, whose training text nobody here knows"
        found.append(Declaration("word vectors", said, is_open=True))
    found += [Declaration("start", said, is_open=is_open) for said, is_open in brought.said]
    found += [
        Declaration(name, "declared public by privacy.assume_public")
        for name in sorted(config.privacy.assume_public)
    ]
    return tuple(found)


def _words(config: ExperimentConfig) -> Optional[str]:
    source, path = config.data.vocabulary.source, config.data.vocabulary.path
    if source == "sample" and path is not None:
        return f"read from {Path(path).name}, declared public by data.vocabulary"
    if source == "file":
        return f"declared public by the list {Path(str(path)).name} (data.vocabulary)"
    if source == "embeddings":
        return (
            f"those of {Path(str(config.data.embeddings.path)).name}, declared public by "
            "data.vocabulary"
        )
    return "those of what the model starts from" if source == "checkpoint" else None


def _labels(config: ExperimentConfig) -> Optional[str]:
    source, path = source_of(config.data.labels), config.data.labels.path
    if source == "sample" and path is not None:
        return f"read from {Path(path).name}, declared public by data.labels"
    if source != "file":
        return None
    name, held = Path(str(path)).name, read_json(str(path))
    if PUBLIC in held:
        return f"{held[PUBLIC]} (the list {name})"
    read = f"read from {held[FROM]}, " if FROM in held else ""
    how = f'the list {name}, whose line "private" was removed' if read else f"the list {name}"
    return f"{read}declared public by {how}"
