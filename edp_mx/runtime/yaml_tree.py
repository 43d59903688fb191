"""Mappings out of YAML files that include each other, and where each key was set."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Dict, Tuple

import yaml

from edp_mx.errors import UserError

KeyPath = Tuple[str, ...]
Tree = Dict[str, Any]
Origins = Dict[KeyPath, str]  # "file, line n", or the override


class _Loader(yaml.SafeLoader):
    """Reads `1e-6` as a number, which plain PyYAML takes for a string."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(\d[\d_]*\.?\d*|\.\d+)[eE][-+]?\d+$"),
    list("-+.0123456789"),
)


def read(path: Path, chain: Tuple[Path, ...] = ()) -> Tuple[Tree, Origins]:
    """One file with all that it includes: the tree, and for each key where it was set.

    Args:
        path: the file.
        chain: the files that include it.

    Raises:
        UserError: not a file of YAML, a key twice, or a file that includes itself.
    """
    if path.resolve() in chain:
        raise UserError(f"{path} includes itself, by way of {' → '.join(map(str, chain))}")
    origins: Origins = {}
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
    tree: Tree = {}
    all_origins: Origins = {}
    for name in included:
        if not (path.parent / name).is_file():
            raise UserError(f"{origins[('include',)]}: include: there is no {path.parent / name}")
        part, part_origins = read(path.parent / name, (*chain, path.resolve()))
        _merge(tree, part)
        all_origins.update(part_origins)
    _merge(tree, own)
    all_origins.update(origins)
    return tree, all_origins


def _construct(
    loader: _Loader, node: yaml.Node, file: Path, path: KeyPath, origins: Origins
) -> Any:
    """Turns a YAML node into a value, noting where each key stands and refusing repeated ones."""
    if not isinstance(node, yaml.MappingNode):
        return loader.construct_object(node, deep=True)
    mapping: Tree = {}
    for key_node, value_node in node.value:
        key = str(loader.construct_object(key_node))
        origin = f"{file}, line {key_node.start_mark.line + 1}"
        place = (*path, key)
        if key in mapping:
            raise UserError(f"{origin}: {'.'.join(place)} is set twice")
        origins[place] = origin
        mapping[key] = _construct(loader, value_node, file, place, origins)
    return mapping


def _merge(tree: Tree, other: Tree) -> None:
    """Lays `other` over `tree`: mappings key by key, everything else replaced."""
    for key, value in other.items():
        if isinstance(value, dict) and isinstance(tree.get(key), dict):
            _merge(tree[key], value)
        else:
            tree[key] = value


def override(tree: Tree, origins: Origins, text: str) -> None:
    """Applies one `a.b=value` in place; the value is read as YAML.

    Raises:
        UserError: it is not of this form.
    """
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
