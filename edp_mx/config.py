"""One typed tree of settings: load, include, override, check, write down."""

from __future__ import annotations

import dataclasses
import difflib
from dataclasses import dataclass, field
from pathlib import Path
from typing import (
    Any,
    Dict,
    Iterable,
    List,
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

from edp_mx.data.corpus import DataConfig
from edp_mx.errors import UserError
from edp_mx.models.bert import BERTConfig
from edp_mx.models.clc import CLCConfig
from edp_mx.privacy.config import PrivacyConfig
from edp_mx.runtime.yaml_tree import KeyPath, override, read
from edp_mx.training.config import TrainingConfig

T = TypeVar("T")
ModelConfig = Union[CLCConfig, BERTConfig]
FAMILIES: Dict[str, type] = {"clc": CLCConfig, "bert": BERTConfig}  # by `model.family`


@dataclass(frozen=True)
class ExperimentConfig:
    """Everything that one training run is made from.

    Attributes:
        name: begins the name of the run directory.
        data: which corpus, how it is split, which vocabulary.
        model: the network; `family` chooses which (clc, bert) and so which keys there are.
        privacy: how gradients are made private.
        training: epochs, batches, optimizer, seeds.
    """

    name: str = "run"
    data: DataConfig = field(default_factory=DataConfig)
    model: ModelConfig = field(default_factory=CLCConfig)
    privacy: PrivacyConfig = field(default_factory=PrivacyConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)


@overload
def load_config(path: Union[str, Path], overrides: Iterable[str] = ...) -> ExperimentConfig: ...


@overload
def load_config(path: Union[str, Path], overrides: Iterable[str] = ..., *, kind: Type[T]) -> T: ...


def load_config(
    path: Union[str, Path], overrides: Iterable[str] = (), *, kind: Any = ExperimentConfig
) -> Any:
    """Reads a YAML file with all that it includes, then applies `key.path=value` overrides.

    Args:
        path: the file.
        overrides: `key.path=value` texts, applied last.
        kind: the dataclass that the whole file is turned into.

    `include: [a.yaml, b.yaml]` merges files from left to right, paths relative to the file that
    names them; the file's own keys come last.

    Raises:
        UserError: not YAML, a key twice, an unknown key (the nearest known one is named), a wrong
            type or an impossible value; says the key's path, the file and the line.
    """
    tree, origins = read(Path(path))
    for text in overrides:
        override(tree, origins, text)
    try:
        return structure(tree, kind)
    except _KeyError as error:
        origin = next(
            (
                origins[error.path[:n]]
                for n in range(len(error.path), 0, -1)
                if error.path[:n] in origins
            ),
            str(path),
        )
        key = ".".join(error.path)
        about = "" if error.reason.startswith(key) else f"{key}: "  # some reasons name their key
        raise UserError(f"{origin}: {about}{error.reason}") from error


def dump_config(config: Any) -> str:
    """The resolved settings as YAML, every key written out, paths absolute."""
    return yaml.safe_dump(_plain(config), sort_keys=False, allow_unicode=True)


def _plain(value: Any, is_path: bool = False) -> Any:
    """Mappings, lists and scalars; what a `path_field` holds becomes absolute."""
    if dataclasses.is_dataclass(value):
        return {
            f.name: _plain(getattr(value, f.name), f.metadata.get("is_path", False))
            for f in dataclasses.fields(value)
        }
    if isinstance(value, (tuple, list)):
        return [_plain(item, is_path) for item in value]
    return str(Path(value).absolute()) if is_path and value else value


class _KeyError(Exception):
    """What is wrong with one key."""

    def __init__(self, path: KeyPath, reason: str) -> None:
        super().__init__(f"{'.'.join(path)}: {reason}")
        self.path, self.reason = path, reason


def structure(tree: Any, kind: Type[T]) -> T:
    """Builds a typed object from plain mappings; nothing is converted silently.

    Raises:
        _KeyError: the first thing that does not fit, with its key's path.
    """
    converter = Converter(forbid_extra_keys=True)
    converter.register_structure_hook_func(
        lambda kind: get_origin(kind) is tuple,
        lambda value, kind: tuple(
            converter.structure(item, get_args(kind)[0]) for item in _strict_list(value)
        ),
    )
    for scalar, accepted in ((bool, (bool,)), (str, (str,)), (int, (int,)), (float, (int, float))):
        converter.register_structure_hook(scalar, _strict(scalar, accepted))
    converter.register_structure_hook(
        ModelConfig, lambda value, _: converter.structure(value, _family_of(value))
    )
    converter.register_structure_hook_factory(
        dataclasses.is_dataclass,
        lambda cls: _checked(
            cls, make_dict_structure_fn(cls, converter, _cattrs_forbid_extra_keys=True)
        ),
    )
    try:
        return converter.structure(tree, kind)
    except (ClassValidationError, UserError, TypeError) as error:
        path, reason = _first_cause(error, ())
        raise _KeyError(path, reason) from error


def _family_of(value: Any) -> type:
    """The configuration class that `model.family` names; CLC where it is left out."""
    family = value.get("family", "clc") if isinstance(value, dict) else "clc"
    if family not in FAMILIES:
        raise UserError(f"family: {family!r} is none of {', '.join(FAMILIES)}")
    return FAMILIES[family]


def _strict(kind: type, accepted: Tuple[type, ...]) -> Any:
    def hook(value: Any, _: type) -> Any:
        if not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool):
            raise TypeError(f"{value!r} is not {_NAMES[kind]}")
        return kind(value)

    return hook


def _strict_list(value: Any) -> List[Any]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r} is not a list, e.g. [a, b]")
    return value


_NAMES = {bool: "true or false", str: "a text", int: "a whole number", float: "a number"}


def _checked(cls: type, build: Any) -> Any:
    def hook(value: Any, kind: type) -> Any:
        if not isinstance(value, dict):
            raise TypeError(f"{value!r} is not a mapping of keys ({', '.join(_keys(cls))})")
        upgrade = getattr(cls, "upgrade", None)  # of what an older version wrote
        return build(upgrade(value) if upgrade else value, kind)

    return hook


def _keys(cls: type) -> List[str]:
    return [f.name for f in dataclasses.fields(cls)]  # type: ignore[arg-type]


def _first_cause(error: BaseException, path: KeyPath) -> Tuple[KeyPath, str]:
    """Walks down a tree of validation errors to the first one that says something."""
    if isinstance(error, ForbiddenExtraKeysError):
        key = sorted(error.extra_fields)[0]
        known = _keys(error.cl)
        near = difflib.get_close_matches(key, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"
        return (*path, key), f"there is no such key; {hint}"
    if isinstance(error, ClassValidationError):
        for cause in error.exceptions:
            notes = getattr(cause, "__notes__", [])
            keys = [note.name for note in notes if getattr(note, "name", None)]
            return _first_cause(cause, (*path, *keys[:1]))
    return path, str(error)
