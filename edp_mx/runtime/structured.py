"""Dataclasses made from mappings that anybody may have written, with each value of its type."""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
from typing import Any, Callable, Sequence, Tuple, Type, TypeVar, Union, get_args, get_origin

from cattrs import ClassValidationError, Converter
from cattrs.errors import ForbiddenExtraKeysError
from cattrs.gen import make_dict_structure_fn

from edp_mx.errors import UserError
from edp_mx.runtime.settings import SettingError

T = TypeVar("T")
_NAMES = {bool: "true or false", str: "a text", int: "a whole number", float: "a number"}


class NotOfKind(UserError):
    """A value that its kind cannot have: the keys that lead to it, and a sentence with them."""

    def __init__(self, place: Tuple[str, ...], sentence: str) -> None:
        super().__init__(sentence)
        self.place = place

    def __reduce__(self) -> Tuple[Any, ...]:
        return NotOfKind, (self.place, str(self))


def structure(value: Any, kind: Type[T]) -> T:
    """Return the dataclass that a value of JSON or YAML holds.

    Raises:
        NotOfKind: a key is unknown (the nearest known one is named) or missing, a value has a wrong
            type, or the dataclass refuses it.
    """
    try:
        return _CONVERTER.structure(value, kind)
    except (ClassValidationError, UserError, TypeError) as error:
        raise NotOfKind(*_first_cause(error, ())) from error


def choose_kind(kind: type, choose: Callable[[Any], type]) -> None:
    """Let a mapping decide which dataclass it is to become, wherever `kind` is asked for."""
    _CONVERTER.register_structure_hook_func(
        lambda asked: asked is kind,
        lambda value, _: _CONVERTER.structure(value, choose(value)),
    )


def names_of(kind: type) -> Sequence[str]:
    """Return the names of a dataclass's fields."""
    return [f.name for f in dataclasses.fields(kind)]  # type: ignore[arg-type]


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
    return converter


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
    if not isinstance(value, (list, tuple)):
        raise TypeError(f"{value!r} is not a list, e.g. [a, b]")
    return value


def _from_mapping(cls: type, build: Any) -> Any:
    def hook(value: Any, kind: type) -> Any:
        if not isinstance(value, dict):
            raise TypeError(f"{value!r} is not a mapping of keys ({', '.join(names_of(cls))})")
        return build(value, kind)

    return hook


def _first_cause(error: BaseException, path: Tuple[str, ...]) -> Tuple[Tuple[str, ...], str]:
    """Return the first error of a tree of errors: the path of its key, and a sentence."""
    if isinstance(error, ForbiddenExtraKeysError):
        key = sorted(error.extra_fields)[0]
        known = names_of(error.cl)
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
    if isinstance(error, KeyError):
        return path, f"{key} is missing"
    return path, f"{key}: {error}" if key and not str(error).startswith(key) else str(error)


_CONVERTER = _converter()
