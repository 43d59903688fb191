"""Dataclasses made from mappings that anybody may have written, with each value of its type."""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import math
from collections import abc
from typing import (
    Any,
    Callable,
    Dict,
    Mapping,
    Sequence,
    Tuple,
    Type,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

from cattrs import BaseValidationError, Converter
from cattrs.errors import ForbiddenExtraKeysError
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override

from edp_mx.errors import UserError
from edp_mx.runtime.settings import SettingError

T = TypeVar("T")
_NAMES = {bool: "true or false", str: "a text", int: "a whole number", float: "a number"}
HUGE = 1e300  # no number is larger, so that sums and products of them are finite


class NotOfKind(UserError):
    """A value that its kind cannot have: the keys that lead to it, and a sentence with them."""

    def __init__(self, place: Tuple[str, ...], sentence: str) -> None:
        super().__init__(sentence)
        self.place = place


class AsRead:
    """Base of dataclasses for the content of a file, which is written again as it was read.

    Keys without a field are kept. Not written are a field that has its default, and one that is
    not compared, which no file has.

    Attributes:
        source: the mapping that it was read from; None if it was made otherwise.
        LIMITS: the least and the largest number that a field may have.
    """

    source: Any = None
    LIMITS: Mapping[str, Tuple[float, float]] = {}

    def __post_init__(self) -> None:
        for key, limits in self.LIMITS.items():
            refuse_outside(key, getattr(self, key), limits)


def refuse_outside(key: str, value: Any, limits: Tuple[float, float]) -> None:
    """Refuse a number that is below or above its limits; None is no number."""
    if value is not None and not limits[0] <= value <= limits[1]:
        raise SettingError(key, f"is {value}, not from {limits[0]:g} to {limits[1]:g}")


def structure(value: Any, kind: Type[T]) -> T:
    """Return the dataclass that a value of JSON or YAML holds.

    Raises:
        NotOfKind: a key is unknown (the nearest known one is named) or missing, a value has a wrong
            type, or the dataclass refuses it.
    """
    try:
        return _CONVERTER.structure(value, kind)
    except _REFUSALS as error:
        raise NotOfKind(*_first_cause(error, ())) from error


def structure_file(value: Any, kind: Type[T], place: Any) -> T:
    """Return the dataclass that a file holds; errors name its place: its path, or a line in it."""
    try:
        return structure(value, kind)
    except NotOfKind as error:
        raise UserError(f"{place}: {error}; it was cut or changed") from error


def unstructure(value: Any) -> Any:
    """Return the value for JSON that `structure` reads as the same."""
    return _CONVERTER.unstructure(value)


def choose_kind(kind: type, choose: Callable[[Any], type]) -> None:
    """Let a mapping decide which dataclass it is to become, wherever `kind` is asked for."""
    _CONVERTER.register_structure_hook_func(
        lambda asked: asked is kind, lambda value, _: _CONVERTER.structure(value, choose(value))
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
        lambda kind: get_origin(kind) in (dict, abc.Mapping),
        lambda value, kind: _of_each_key(value, get_args(kind)[1], converter),
    )
    converter.register_structure_hook_func(
        lambda kind: get_origin(kind) is Union and type(None) not in get_args(kind),
        lambda value, kind: _one_of(value, get_args(kind), converter),
    )
    for scalar in _NAMES:
        converter.register_structure_hook(scalar, _strict)
    converter.register_structure_hook_factory(
        dataclasses.is_dataclass, lambda cls: _from_mapping(cls, converter)
    )
    converter.register_unstructure_hook_factory(
        lambda cls: isinstance(cls, type) and issubclass(cls, AsRead),
        lambda cls: _as_read(cls, converter),
    )
    return converter


def _strict(value: Any, kind: Any) -> Any:
    accepted = (int, float) if kind is float else (kind,)
    if not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool):
        raise TypeError(f"{_quoted(value)} is not {_NAMES[kind]}")
    if kind is float and HUGE < abs(value) != math.inf:
        raise TypeError(f"{value!r} is more than {HUGE:g}")
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
        f"{_quoted(value)} is not {' or '.join(_NAMES.get(kind, 'a mapping') for kind in kinds)}"
    )


def _quoted(value: Any) -> str:
    """A value as a file has it: YAML and JSON call null, or leave out, what is None here."""
    return "an empty value" if value is None else repr(value)


def _strict_list(value: Any) -> Sequence[Any]:
    if not isinstance(value, (list, tuple)):
        raise TypeError(f"{value!r} is not a list, e.g. [a, b]")
    return value


class _Inside(Exception):
    """An error in the value of a key, which is its only argument."""


_REFUSALS = (BaseValidationError, UserError, TypeError, _Inside)


def _of_each_key(value: Any, kind: Any, converter: Converter) -> Dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"{value!r} is not a mapping of keys")
    found = {}
    for key, item in value.items():
        try:
            found[key] = converter.structure(item, kind)
        except _REFUSALS as error:
            raise _Inside(str(key)) from error
    return found


def _from_mapping(cls: type, converter: Converter) -> Any:
    is_file = issubclass(cls, AsRead)
    build = make_dict_structure_fn(  # type: ignore[var-annotated]
        cls, converter, _cattrs_forbid_extra_keys=not is_file, **_in_no_file(cls)
    )

    def hook(value: Any, kind: type) -> Any:
        if not isinstance(value, dict):
            raise TypeError(f"{value!r} is not a mapping of keys ({', '.join(names_of(cls))})")
        if not is_file:
            return build(value, kind)
        made = build(value, kind)
        object.__setattr__(made, "source", value)
        return made

    return hook


def _as_read(cls: Type[AsRead], converter: Converter) -> Any:
    build = make_dict_unstructure_fn(
        cls, converter, _cattrs_omit_if_default=True, **_in_no_file(cls)
    )
    return lambda made: build(made) if made.source is None else dict(made.source)


def _in_no_file(cls: type) -> Dict[str, Any]:
    fields = dataclasses.fields(cls)  # type: ignore[arg-type]
    return {field.name: override(omit=True) for field in fields if not field.compare}


def _first_cause(error: BaseException, path: Tuple[str, ...]) -> Tuple[Tuple[str, ...], str]:
    """Return the first error of a tree of errors: the path of its key, and a sentence."""
    if isinstance(error, ForbiddenExtraKeysError):
        key = sorted(error.extra_fields)[0]
        known = names_of(error.cl)
        near = difflib.get_close_matches(key, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"known keys are {', '.join(known)}"
        path = (*path, key)
        return path, f"{'.'.join(path)}: there is no such key; {hint}"
    if isinstance(error, BaseValidationError):
        cause = error.exceptions[0]
        notes = getattr(cause, "__notes__", [])
        keys = [note.name for note in notes if getattr(note, "name", None)]
        return _first_cause(cause, (*path, *keys[:1]))
    if isinstance(error, _Inside):
        return _first_cause(error.__cause__ or error, (*path, error.args[0]))
    if isinstance(error, SettingError):
        path = (*path, *error.key.split("."))
        return path, f"{'.'.join(path)} {error.demand}"
    key = ".".join(path)
    if isinstance(error, KeyError):
        return path, f"{key} is missing"
    return path, f"{key}: {error}" if key and not str(error).startswith(key) else str(error)


_CONVERTER = _converter()
