"""The settings of a run: read from YAML files, checked, and written out again."""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, List, Sequence, Tuple, Union

from edp_mx.data.config import DataConfig
from edp_mx.data.labels import LabelsConfig
from edp_mx.data.readers.columns_config import NONE
from edp_mx.dp.accounting.config import PrivacyConfig
from edp_mx.errors import UserError
from edp_mx.models.checkpoints.inherited_settings import adopt_sizes
from edp_mx.models.clc import CLCConfig
from edp_mx.models.encoder import ModelConfig
from edp_mx.models.registry import FAMILIES
from edp_mx.runtime.config_files import Overrides, read_settings
from edp_mx.runtime.settings import SettingError, Settings, setting
from edp_mx.runtime.structured import choose_kind, structure
from edp_mx.runtime.yaml_tree import Origins, Tree, dump, load
from edp_mx.tasks.intent_slot.task import INTENT_SLOT
from edp_mx.tasks.registry import TASKS
from edp_mx.training.config import TrainingConfig

Files = Union[str, Path, Sequence[Union[str, Path]]]


@dataclass(frozen=True)
class ExperimentConfig(Settings):
    """All settings of one training run.

    Attributes:
        name: the beginning of the run directory's name; by default the names of the files.
        task: what is learned: intent_slot (an intent per utterance, and slots), classification
            (a label per text), masked_lm (pieces that are masked; a BERT's pre-training) or
            causal_lm (each piece from those before it; a GPT-2).
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
        """Refuse a name that no folder can have; have a corpus read without what its task lacks."""
        super().__post_init__()
        name = self.name
        if Path(name).name != name or "\0" in name or len(name.encode("utf-8")) > 200:
            raise SettingError(
                "name", "must be short and without /, since it begins the name of a folder"
            )
        task, data = TASKS[self.task], self.data
        if data.labels.source == NONE and task.has_labels:
            raise SettingError(
                "data.labels.source", f"must not be none, because task: {self.task} has labels"
            )
        absent: List[str] = []
        if not task.has_slots:
            absent += ["slots", "spans"]
        if not task.has_labels:
            absent += ["intent"]
        if not absent:
            return
        for name in absent:
            if getattr(data.columns, name) not in (None, NONE):
                raise SettingError(
                    f"data.columns.{name}", f"must be left out, because task: {self.task} has none"
                )
        without = {name: NONE for name in absent if name != "spans"}
        columns = replace(data.columns, **without)
        labels = data.labels if task.has_labels else LabelsConfig(NONE)
        object.__setattr__(self, "data", replace(data, columns=columns, labels=labels))


def load_config(files: Files, overrides: Overrides = ()) -> ExperimentConfig:
    """Read settings from YAML files, one or several of which each overrides those before it.

    A file may include others: `include: [a.yaml, b.yaml]`, with paths relative to that file.
    Included files are merged from left to right, and the file's own keys come last.

    Args:
        overrides: `key.path=value` texts or a mapping of dotted keys, applied last.

    Raises:
        UserError: see `read_settings`.
    """
    paths = [files] if isinstance(files, (str, os.PathLike)) else list(files)
    return read_settings(
        [Path(path) for path in paths], overrides, kind=ExperimentConfig, complete=_adopt_sizes
    )


def _adopt_sizes(tree: Tree, origins: Origins) -> None:
    """Fill in a model's sizes from its start: a checkpoint, or another run.

    Sizes given with `--set`, or in the file that names the start, win; sizes in other files were
    meant for another start and are replaced.
    """

    def is_default(key: Tuple[str, ...], start: str) -> bool:
        size, checkpoint = (origins.get(place, "") for place in (key, ("model", start)))
        return (
            not size.startswith(("--set", "settings["))
            and size.split(", line ")[0] != (checkpoint.split(", line ")[0])
        )

    adopt_sizes(tree, is_default, family=CLCConfig.family)


def dump_config(config: Any) -> str:
    """Return all settings as YAML, defaults included, with absolute paths."""
    return dump(tree_of(config))


def read_dumped(text: str) -> ExperimentConfig:
    """Return the settings that `dump_config` wrote."""
    return structure(load(text), ExperimentConfig)


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
