"""Checked settings from YAML files and `--set`."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any, Callable, List, Mapping, Optional, Sequence, Type, TypeVar, Union

from edp_mx.errors import UserError
from edp_mx.runtime.structured import NotOfKind, structure
from edp_mx.runtime.yaml_tree import KeyPath, Origins, Tree, override, put, read_layers

T = TypeVar("T")
Overrides = Union[Sequence[str], Mapping[str, Any]]  # `key.path=value` texts, or values by key


def overrides_of(settings: Mapping[str, Any]) -> List[str]:
    """Return settings by dotted key as `--set` takes them, from which the same values are read."""
    return [f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in settings.items()]


def read_settings(
    paths: Sequence[Path],
    overrides: Overrides,
    *,
    kind: Type[T],
    complete: Optional[Callable[[Tree, Origins], None]] = None,
) -> T:
    """Read settings from files, each of which overrides those before it; `overrides` come last.

    Args:
        complete: fills in settings that others imply, before the values are checked.

    Raises:
        UserError: the files set nothing at all, the YAML is broken, a key is repeated or unknown
            (the nearest known key is named), or a value has a wrong type or is out of bounds.
            Names the key, the file and the line.
    """
    tree, origins = read_layers(paths)
    if isinstance(overrides, Mapping):
        for key, value in overrides.items():
            put(tree, origins, str(key), copy.deepcopy(value), f"settings[{key!r}]")
    else:
        for text in overrides:
            override(tree, origins, text)
    # A file of comments: all defaults would be hours on ATIS.
    if paths and not set(tree) - {"name"}:
        raise UserError(
            f"{paths[-1]} sets nothing; begin with, for example, include: [configs/model/clc.yaml]"
        )
    if complete is not None:
        complete(tree, origins)
    try:
        return structure(tree, kind)
    except NotOfKind as error:
        place = _origin(error.place, origins) or (paths[-1] if paths else None)
        raise UserError(f"{place}: {error}" if place else str(error)) from error


def _origin(place: KeyPath, origins: Origins) -> Optional[str]:
    """Return where a key was set; else a key below it (a `--set`), or one that it lies in."""
    below = [key for key in origins if key[: len(place)] == place]
    parents = [place[:length] for length in range(len(place) - 1, 0, -1)]
    return next((origins[key] for key in (place, *below, *parents) if key in origins), None)
