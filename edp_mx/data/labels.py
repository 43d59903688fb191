"""The slots and intents that a model knows, and their source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, List, Optional, Sequence, Set, Tuple
from unicodedata import normalize

from edp_mx.data.columnar_corpus import intents_of, tags_of
from edp_mx.data.readers.columns_config import NONE
from edp_mx.data.utterance import Utterance
from edp_mx.errors import UserError
from edp_mx.runtime.files import path_field
from edp_mx.runtime.json_text import read_json
from edp_mx.runtime.settings import SettingError, Settings, setting

PRIVATE = "private"  # the key of a list that was read from a private corpus
FROM = "read_from"  # the key of that corpus' name, which stays when the line before it goes
PUBLIC = "public"  # the key of who has declared such a list public


def check_path(source: str, path: Optional[str]) -> None:
    """Require a path with the source "file", allow one with "sample" and refuse all others."""
    if source == "file" and path is None:
        raise SettingError("path", "must name the list, because the source is file")
    if source not in ("file", "sample") and path is not None:
        raise SettingError("path", f"must be left out, because the source is {source}")


@dataclass(frozen=True)
class LabelsConfig(Settings):
    """Where slots and intents come from.

    Args:
        source: "train" (the training part; no ε covers that), "sample" (other utterances, which are
            public), "file" (a public list) or "none" (of a task without labels).
        path: with "file", a JSON file `{"slots": ["city", …], "intents": ["flight", …]}` of slot
            names without B- and I- (none for a corpus without slots), which counts as public unless
            it has the key "private"; with "sample" as for `data.vocabulary`.
    """

    source: str = setting("train", one_of=("train", "sample", "file", NONE))
    path: Optional[str] = path_field()

    def __post_init__(self) -> None:
        super().__post_init__()
        check_path(self.source, self.path)


def source_of(config: LabelsConfig) -> str:
    """Return the source of labels, "private_file" for a list that is marked as private."""
    if config.source == "file" and PRIVATE in read_json(str(config.path)):
        return "private_file"
    return config.source


def labels_of(
    train: Sequence[Utterance], config: LabelsConfig, sample: Sequence[Utterance]
) -> Tuple[Tuple[str, ...], Tuple[str, ...]]:
    """Return the slot tags ("O" first) and the intents; all those of `train` must be known.

    Raises:
        UserError: the list is missing or broken, or lacks a label of the training part (the
            sentence names the label and the utterance).
    """
    if config.source == NONE:
        return ("O",), ("",)
    if config.source == "train":
        return ("O", *sorted(tags_of(train) - {"O"})), tuple(sorted(intents_of(train)))
    if config.source == "sample":
        names = sorted({tag[2:] for tag in tags_of(sample) - {"O"}})
        intents, place = sorted(intents_of(sample)), config.path or "the public sample"
    else:
        place = str(config.path)
        names, intents = _listed_labels(place)
    slots = ("O", *(f"{prefix}-{name}" for name in names for prefix in "BI"))
    _check_labels(train, set(slots), set(intents), place)
    return slots, tuple(intents)


def _listed_labels(path: str) -> List[List[str]]:
    value, names = read_json(path), {}
    for key in ("slots", "intents"):
        absent: Any = [] if key == "slots" else None
        entries = value.get(key, absent) if isinstance(value, dict) else None
        if key == "intents" and entries == [""]:  # of a corpus that is read without
            names[key] = entries
            continue
        if not isinstance(entries, list) or not all(isinstance(e, str) and e for e in entries):
            raise UserError(f'{path}: "{key}" is not a list of names')
        names[key] = [normalize("NFC", each) for each in entries]
        if len(set(names[key])) != len(entries):
            raise UserError(f'{path}: a name occurs twice in "{key}"')
    return [names["slots"], names["intents"]]


def _check_labels(
    train: Sequence[Utterance], slots: Set[str], intents: Set[str], path: str
) -> None:
    if tags_of(train) <= slots and intents_of(train) <= intents:
        return
    for utterance in train:
        missing = [t for t in utterance.slots if t not in slots]
        missing += [utterance.intent] if utterance.intent not in intents else []
        if missing:
            raise UserError(
                f"{path} lacks the label {missing[0]!r} of the training utterance "
                f"{utterance.id!r}; add it to the list or remove the utterance"
            )
