"""The settings of a run: read from YAML files, checked, and written out again."""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import os
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import (
    Any,
    Optional,
    Sequence,
    Tuple,
    Type,
    TypeVar,
    Union,
    get_args,
    get_origin,
    overload,
)

import yaml
from cattrs import ClassValidationError, Converter
from cattrs.errors import ForbiddenExtraKeysError
from cattrs.gen import make_dict_structure_fn

from edp_mx.data.config import DataConfig
from edp_mx.errors import UserError
from edp_mx.models.checkpoints.adopted import adopt_sizes
from edp_mx.models.clc import CLCConfig
from edp_mx.models.encoder import ModelConfig
from edp_mx.models.registry import FAMILIES
from edp_mx.privacy.config import PrivacyConfig
from edp_mx.runtime.settings import SettingError
from edp_mx.runtime.yaml_tree import KeyPath, Origins, Tree, override, read_layers
from edp_mx.training.config import TrainingConfig

T = TypeVar("T")
Files = Union[str, Path, Sequence[Union[str, Path]]]


@dataclass(frozen=True)
class ExperimentConfig:
    """All settings of one training run.

    Attributes:
        name: the beginning of the run directory's name; by default the names of the files.
        model: `family` (an entry of `models.registry`) chooses which keys there are.
        privacy: how the gradients are made private.
    """

    name: str = "run"
    data: DataConfig = field(default_factory=DataConfig)
    model: ModelConfig = field(default_factory=CLCConfig)
    privacy: PrivacyConfig = field(default_factory=PrivacyConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)


@overload
def load_config(files: Files, overrides: Sequence[str] = ...) -> ExperimentConfig: ...


@overload
def load_config(files: Files, overrides: Sequence[str] = ..., *, kind: Type[T]) -> T: ...


def load_config(
    files: Files, overrides: Sequence[str] = (), *, kind: Any = ExperimentConfig
) -> Any:
    """Read settings from YAML files, one or several of which each overrides those before it.

    A file may include others: `include: [a.yaml, b.yaml]`, with paths relative to that file.
    Included files are merged from left to right, and the file's own keys come last.

    Args:
        overrides: `key.path=value` texts, applied last.
        kind: the dataclass to fill.

    Raises:
        UserError: the files set nothing at all, the YAML is broken, a key is repeated or unknown
            (the nearest known key is named), or a value has a wrong type or is out of bounds.
            Names the key, the file and the line.
    """
    paths = [files] if isinstance(files, (str, os.PathLike)) else list(files)
    tree, origins = read_layers([Path(path) for path in paths])
    for text in overrides:
        override(tree, origins, text)
    if not set(tree) - {"name"}:  # a file of comments: all defaults would be hours on ATIS
        raise UserError(
            f"{paths[-1]} sets nothing; begin with, for example, include: [configs/model/clc.yaml]"
        )
    _adopt_sizes(tree, origins, has_data="data" in _keys(kind))
    try:
        return _converter().structure(tree, kind)
    except (ClassValidationError, UserError, TypeError) as error:
        place, reason = _first_cause(error, ())
        raise UserError(f"{_origin(place, origins) or paths[-1]}: {reason}") from error


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
            not size.startswith("--set")
            and size.split(", line ")[0] != (checkpoint.split(", line ")[0])
        )

    adopt_sizes(tree, is_default, has_data=has_data)


def dump_config(config: Any) -> str:
    """Return all settings as YAML, defaults included, with absolute paths."""
    return yaml.safe_dump(_plain(config), sort_keys=False, allow_unicode=True)


def read_dumped(text: str, *, kind: Type[T]) -> T:
    """Return the settings that `dump_config` wrote."""
    return _converter().structure(yaml.safe_load(text), kind)


def default_of(key: str, family: str) -> Any:
    """Return the default of a setting, by its dotted key; None where there is no such setting."""
    value: Any = ExperimentConfig(model=FAMILIES[family].config())
    *branches, last = key.split(".")
    for branch in branches:
        value = getattr(value, branch, None)
    return getattr(type(value), last, None)  # what was given, before it is completed


def _plain(value: Any, is_path: bool = False) -> Any:
    """Convert settings to mappings, lists and scalars, and the paths among them to absolute."""
    if dataclasses.is_dataclass(value):
        return {
            f.name: _plain(getattr(value, f.name), f.metadata.get("is_path", False))
            for f in dataclasses.fields(value)
        }
    if isinstance(value, (tuple, list)):
        return [_plain(item, is_path) for item in value]
    return str(Path(value).absolute()) if is_path and value and isinstance(value, str) else value


@lru_cache(maxsize=None)
def _converter() -> Converter:
    converter = Converter(forbid_extra_keys=True)
    converter.register_structure_hook_func(
        lambda kind: get_origin(kind) is tuple,
        lambda value, kind: tuple(
            converter.structure(item, get_args(kind)[0]) for item in _strict_list(value)
        ),
    )
    converter.register_structure_hook_func(
        lambda kind: get_origin(kind) is Union and type(None) not in get_args(kind),
        lambda value, kind: _one_of(value, get_args(kind), converter),
    )
    for scalar in _NAMES:
        converter.register_structure_hook(scalar, _strict)
    converter.register_structure_hook_factory(
        dataclasses.is_dataclass,
        lambda cls: _from_mapping(
            cls, make_dict_structure_fn(cls, converter, _cattrs_forbid_extra_keys=True)
        ),
    )
    converter.register_structure_hook_func(
        lambda kind: kind is ModelConfig,
        lambda value, _: converter.structure(value, _model_config(value)),
    )
    return converter


def _model_config(value: Any) -> Any:
    """Return the dataclass of the settings that `model.family` names; CLC's by default."""
    family = value.get("family", CLCConfig.family) if isinstance(value, dict) else CLCConfig.family
    if family not in FAMILIES:
        raise SettingError("family", f"must be one of {', '.join(FAMILIES)}, not {family!r}")
    return FAMILIES[family].config


def _strict(value: Any, kind: Any) -> Any:
    accepted = (int, float) if kind is float else (kind,)
    if not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool):
        raise TypeError(f"{value!r} is not {_NAMES[kind]}")
    return kind(value)


def _one_of(value: Any, kinds: Sequence[Any], converter: Converter) -> Any:
    """Read a value as the first of some kinds that it can be, a dataclass for a mapping."""
    for kind in kinds:
        if isinstance(kind, type) and dataclasses.is_dataclass(kind):
            if isinstance(value, dict):
                return converter.structure(value, kind)
        else:
            with contextlib.suppress(TypeError):
                return _strict(value, kind)
    raise TypeError(
        f"{value!r} is not {' or '.join(_NAMES.get(kind, 'a mapping') for kind in kinds)}"
    )


def _strict_list(value: Any) -> Sequence[Any]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r} is not a list, e.g. [a, b]")
    return value


_NAMES = {bool: "true or false", str: "a text", int: "a whole number", float: "a number"}


def _from_mapping(cls: type, build: Any) -> Any:
    def hook(value: Any, kind: type) -> Any:
        if not isinstance(value, dict):
            raise TypeError(f"{value!r} is not a mapping of keys ({', '.join(_keys(cls))})")
        upgrade = getattr(cls, "upgrade", None)  # renames the keys of an older version
        return build(upgrade(value) if upgrade else value, kind)

    return hook


def _keys(cls: type) -> Sequence[str]:
    return [f.name for f in dataclasses.fields(cls)]  # type: ignore[arg-type]


def _first_cause(error: BaseException, path: KeyPath) -> Tuple[KeyPath, str]:
    """Return the first error of a tree of errors: the path of its key, and a sentence."""
    if isinstance(error, ForbiddenExtraKeysError):
        key = sorted(error.extra_fields)[0]
        known = _keys(error.cl)
        near = difflib.get_close_matches(key, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"known keys are {', '.join(known)}"
        path = (*path, key)
        return path, f"{'.'.join(path)}: there is no such key; {hint}"
    if isinstance(error, ClassValidationError):
        cause = error.exceptions[0]
        notes = getattr(cause, "__notes__", [])
        keys = [note.name for note in notes if getattr(note, "name", None)]
        return _first_cause(cause, (*path, *keys[:1]))
    if isinstance(error, SettingError):
        path = (*path, *error.key.split("."))
        return path, f"{'.'.join(path)} {error.demand}"
    key = ".".join(path)
    return path, f"{key}: {error}" if key and not str(error).startswith(key) else str(error)
