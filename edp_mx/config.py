"""The settings of a run: read from YAML files, checked, and written out again."""

from __future__ import annotations

import copy
import dataclasses
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Mapping, Optional, Sequence, Type, TypeVar, Union, overload

from edp_mx.data.config import DataConfig
from edp_mx.data.readers.columns_config import NO_SLOTS
from edp_mx.dp.privacy.config import PrivacyConfig
from edp_mx.errors import UserError
from edp_mx.models.checkpoints.adopted import adopt_sizes
from edp_mx.models.clc import CLCConfig
from edp_mx.models.encoder import ModelConfig
from edp_mx.models.registry import FAMILIES
from edp_mx.runtime.settings import SettingError, Settings, setting
from edp_mx.runtime.structured import NotOfKind, choose_kind, names_of, structure
from edp_mx.runtime.yaml_tree import KeyPath, Origins, Tree, dump, load, override, put, read_layers
from edp_mx.tasks.intent_slot.task import INTENT_SLOT
from edp_mx.tasks.registry import TASKS
from edp_mx.training.config import TrainingConfig

T = TypeVar("T")
Files = Union[str, Path, Sequence[Union[str, Path]]]
Overrides = Union[Sequence[str], Mapping[str, Any]]  # `key.path=value` texts, or values by key


@dataclass(frozen=True)
class ExperimentConfig(Settings):
    """All settings of one training run.

    Attributes:
        name: the beginning of the run directory's name; by default the names of the files.
        task: what is learned: intent_slot (an intent per utterance, and slots) or classification
            (a label per text).
        model: `family` (an entry of `models.registry`) chooses which keys there are.
        privacy: how the gradients are made private.
    """

    name: str = "run"
    task: str = setting(INTENT_SLOT.name, one_of=tuple(TASKS))
    data: DataConfig = field(default_factory=DataConfig)
    model: ModelConfig = field(default_factory=CLCConfig)
    privacy: PrivacyConfig = field(default_factory=PrivacyConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)

    def __post_init__(self) -> None:
        """Have the corpus of a task without slots read without, and say so in its settings."""
        super().__post_init__()
        columns = self.data.columns
        if TASKS[self.task].has_slots or columns.slots == NO_SLOTS:
            return
        for name in ("slots", "spans"):
            if getattr(columns, name) is not None:
                raise SettingError(
                    f"data.columns.{name}", f"must be left out, because task: {self.task} has none"
                )
        data = replace(self.data, columns=replace(columns, slots=NO_SLOTS))
        object.__setattr__(self, "data", data)


@overload
def load_config(files: Files, overrides: Overrides = ...) -> ExperimentConfig: ...


@overload
def load_config(files: Files, overrides: Overrides = ..., *, kind: Type[T]) -> T: ...


def load_config(files: Files, overrides: Overrides = (), *, kind: Any = ExperimentConfig) -> Any:
    """Read settings from YAML files, one or several of which each overrides those before it.

    A file may include others: `include: [a.yaml, b.yaml]`, with paths relative to that file.
    Included files are merged from left to right, and the file's own keys come last.

    Args:
        overrides: `key.path=value` texts or a mapping of dotted keys, applied last.
        kind: the dataclass to fill.

    Raises:
        UserError: the files set nothing at all, the YAML is broken, a key is repeated or unknown
            (the nearest known key is named), or a value has a wrong type or is out of bounds.
            Names the key, the file and the line.
    """
    paths = [files] if isinstance(files, (str, os.PathLike)) else list(files)
    tree, origins = read_layers([Path(path) for path in paths])
    if isinstance(overrides, Mapping):
        for key, value in overrides.items():
            put(tree, origins, str(key), copy.deepcopy(value), f"settings[{key!r}]")
    else:
        for text in overrides:
            override(tree, origins, text)
    if not set(tree) - {"name"}:  # a file of comments: all defaults would be hours on ATIS
        raise UserError(
            f"{paths[-1]} sets nothing; begin with, for example, include: [configs/model/clc.yaml]"
        )
    _adopt_sizes(tree, origins, has_data="data" in names_of(kind))
    try:
        return structure(tree, kind)
    except NotOfKind as error:
        raise UserError(f"{_origin(error.place, origins) or paths[-1]}: {error}") from error


def _origin(place: KeyPath, origins: Origins) -> Optional[str]:
    """Return where a key was set; else a key below it (a `--set`), or one that it lies in."""
    below = [key for key in origins if key[: len(place)] == place]
    parents = [place[:length] for length in range(len(place) - 1, 0, -1)]
    return next((origins[key] for key in (place, *below, *parents) if key in origins), None)


def _adopt_sizes(tree: Tree, origins: Origins, *, has_data: bool) -> None:
    """Take a BERT's sizes from its checkpoint, but for those that stand in the same place.

    In place of those of other files, that is, which were meant for another checkpoint: a `--set`
    holds, and so does the config.yaml of a run, where all settings stand in one file.
    """

    def is_default(key: str, start: str) -> bool:
        size, checkpoint = (origins.get(("model", name), "") for name in (key, start))
        return (
            not size.startswith(("--set", "settings["))
            and size.split(", line ")[0] != (checkpoint.split(", line ")[0])
        )

    adopt_sizes(tree, is_default, has_data=has_data)


def dump_config(config: Any) -> str:
    """Return all settings as YAML, defaults included, with absolute paths."""
    return dump(tree_of(config))


def read_dumped(text: str, *, kind: Type[T]) -> T:
    """Return the settings that `dump_config` wrote."""
    return structure(load(text), kind)


def default_of(key: str, family: str) -> Any:
    """Return the default of a setting, by its dotted key; None where there is no such setting."""
    if family not in FAMILIES:
        raise UserError(f"there is no family {family!r} of models; known: {', '.join(FAMILIES)}")
    value: Any = ExperimentConfig(model=FAMILIES[family].config())
    *branches, last = key.split(".")
    for branch in branches:
        value = getattr(value, branch, None)
    return getattr(type(value), last, None)  # what was given, before it is completed


def tree_of(value: Any, is_path: bool = False) -> Any:
    """Return settings as mappings, lists and scalars, and the paths among them as absolute."""
    if dataclasses.is_dataclass(value):
        return {
            f.name: tree_of(getattr(value, f.name), f.metadata.get("is_path", False))
            for f in dataclasses.fields(value)
        }
    if isinstance(value, (tuple, list)):
        return [tree_of(item, is_path) for item in value]
    return str(Path(value).absolute()) if is_path and value and isinstance(value, str) else value


def _kind_of_model(value: Any) -> Any:
    """Return the dataclass of the settings that `model.family` names; CLC's by default."""
    family = value.get("family", CLCConfig.family) if isinstance(value, dict) else CLCConfig.family
    if not isinstance(family, str) or family not in FAMILIES:
        raise SettingError("family", f"must be one of {', '.join(FAMILIES)}, not {family!r}")
    return FAMILIES[family].config


choose_kind(ModelConfig, _kind_of_model)
