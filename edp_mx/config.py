"""One typed tree of settings: load, include, override, check, write down."""

from __future__ import annotations

import dataclasses
import difflib
import re
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
from edp_mx.training.config import TrainingConfig

T = TypeVar("T")
KeyPath = Tuple[str, ...]
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
    tree, origins = _read(Path(path), ())
    for override in overrides:
        _override(tree, origins, override)
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


class _Loader(yaml.SafeLoader):
    """Reads `1e-6` as a number, which plain PyYAML takes for a string."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(\d[\d_]*\.?\d*|\.\d+)[eE][-+]?\d+$"),
    list("-+.0123456789"),
)


def _read(path: Path, chain: Tuple[Path, ...]) -> Tuple[Dict[str, Any], Dict[KeyPath, str]]:
    """One file with its includes: the tree, and for each key where it was set."""
    if path.resolve() in chain:
        raise UserError(f"{path} includes itself, by way of {' → '.join(map(str, chain))}")
    origins: Dict[KeyPath, str] = {}
    try:
        loader = _Loader(path.read_text(encoding="utf-8"))
        node = loader.get_single_node()
        own = _construct(loader, node, path, (), origins) if node is not None else {}
    except OSError as error:
        raise UserError(f"cannot read the configuration {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8 text (byte {error.start})") from error
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise UserError(f"{path}, line {line}: not YAML ({error.problem})") from error
    except (yaml.YAMLError, RecursionError) as error:  # a forbidden character; an alias of itself
        raise UserError(f"{path}: not YAML that can be read ({type(error).__name__})") from error
    if not isinstance(own, dict):
        raise UserError(f"{path}: a configuration is a mapping of keys, e.g. 'training:'")
    included = own.pop("include", [])
    if not isinstance(included, list) or not all(isinstance(item, str) for item in included):
        raise UserError(f"{origins[('include',)]}: include: must be a list of files")
    tree: Dict[str, Any] = {}
    all_origins: Dict[KeyPath, str] = {}
    for name in included:
        if not (path.parent / name).is_file():
            raise UserError(f"{origins[('include',)]}: include: there is no {path.parent / name}")
        part, part_origins = _read(path.parent / name, (*chain, path.resolve()))
        _merge(tree, part)
        all_origins.update(part_origins)
    _merge(tree, own)
    all_origins.update(origins)
    return tree, all_origins


def _construct(
    loader: _Loader, node: yaml.Node, file: Path, path: KeyPath, origins: Dict[KeyPath, str]
) -> Any:
    """Turns a YAML node into a value, noting where each key stands and refusing repeated ones."""
    if not isinstance(node, yaml.MappingNode):
        return loader.construct_object(node, deep=True)
    mapping: Dict[str, Any] = {}
    for key_node, value_node in node.value:
        key = str(loader.construct_object(key_node))
        origin = f"{file}, line {key_node.start_mark.line + 1}"
        place = (*path, key)
        if key in mapping:
            raise UserError(f"{origin}: {'.'.join(place)} is set twice")
        origins[place] = origin
        mapping[key] = _construct(loader, value_node, file, place, origins)
    return mapping


def _merge(tree: Dict[str, Any], other: Dict[str, Any]) -> None:
    """Lays `other` over `tree`: mappings key by key, everything else replaced."""
    for key, value in other.items():
        if isinstance(value, dict) and isinstance(tree.get(key), dict):
            _merge(tree[key], value)
        else:
            tree[key] = value


def _override(tree: Dict[str, Any], origins: Dict[KeyPath, str], text: str) -> None:
    """Applies one `a.b=value`; the value is read as YAML."""
    name, equals, value_text = text.partition("=")
    path = tuple(name.strip().split("."))
    if not equals or not all(path):
        raise UserError(f"--set {text}: write it as key.path=value, e.g. --set training.epochs=3")
    try:
        value = yaml.load(value_text, Loader=_Loader)  # noqa: S506 (a SafeLoader)
    except yaml.YAMLError as error:
        raise UserError(f"--set {text}: the value is not YAML") from error
    branch = tree
    for key in path[:-1]:
        if not isinstance(branch.setdefault(key, {}), dict):
            branch[key] = {}
        branch = branch[key]
    _merge(branch, {path[-1]: value})
    origins[path] = f"--set {text}"


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
        return build(value, kind)

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
