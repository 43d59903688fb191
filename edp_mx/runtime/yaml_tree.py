"""YAML files that include or override each other, and where each key is set."""

from __future__ import annotations

import math
import os
import re
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

import yaml

from edp_mx.errors import MOST_QUOTED, UserError

KeyPath = Tuple[str, ...]
Tree = Dict[str, Any]
Origins = Dict[KeyPath, str]  # "file, line n", or the text of the override


MOST_BYTES, MOST_FILES = 2**20, 100  # of one file; that one configuration includes
MOST_BITS = 100  # of a whole number
_OCTAL_OR_TIME = re.compile(r"[-+]?(0[\d_]+$|[\d_]+:)")  # 010 would be 8, and 1:30 be 90


class _Loader(yaml.SafeLoader):
    """A loader that reads `1e-6` as a number, which plain PyYAML takes for a string.

    It takes no aliases: a few lines of them can stand for more than a memory holds.
    """

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Refuse an alias, or compose the node as ever."""
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark
            raise yaml.MarkedYAMLError(problem="an alias; write the value out", problem_mark=mark)
        return super().compose_node(parent, index)

    def construct_object(self, node: Any, deep: bool = False) -> Any:
        """Return a node's value; one that its tag cannot have is refused with its line."""
        try:
            value = super().construct_object(node, deep)
        except (ValueError, AttributeError, TypeError, LookupError, OverflowError) as error:
            raise yaml.MarkedYAMLError(
                problem="a value that its type cannot have", problem_mark=node.start_mark
            ) from error
        if isinstance(value, int) and value.bit_length() > MOST_BITS:
            raise yaml.MarkedYAMLError(problem="a huge number", problem_mark=node.start_mark)
        if isinstance(value, (int, float)) and _OCTAL_OR_TIME.match(node.value):
            problem = f"{node.value} stands for {value} in YAML; quote it, or write the number out"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
        return value


class _Dumper(yaml.SafeDumper):
    """A dumper that quotes texts which the loader would read as something else."""

    def represent_text(self, text: str) -> yaml.Node:
        """Escape unprintable characters: YAML takes some of it for the end of a line."""
        style = None if text.isprintable() else '"'
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _Dumper.represent_text)
for _each in (_Loader, _Dumper):
    _each.add_implicit_resolver(
        "tag:yaml.org,2002:float",
        re.compile(r"^[-+]?(\d[\d_]*\.?\d*|\.\d+)[eE][-+]?\d+$"),
        list("-+.0123456789"),
    )


def dump(tree: Tree) -> str:
    """Return mappings, lists and scalars as YAML that `load` and `read_mapping` read alike."""
    return yaml.dump(tree, Dumper=_Dumper, sort_keys=False, allow_unicode=True)


def quoted(text: str) -> str:
    """Return a text between quotation marks, on one line."""
    return yaml.dump(
        text, Dumper=_Dumper, default_style='"', width=math.inf, allow_unicode=True
    ).rstrip("\n")


def load(text: str) -> Any:
    """Return the value in a text of YAML.

    Raises:
        yaml.YAMLError: it is not YAML.
    """
    return yaml.load(text, Loader=_Loader)  # noqa: S506 (a SafeLoader)


def read_layers(paths: Sequence[Path]) -> Tuple[Tree, Origins]:
    """Read files that are laid over each other, and note where each key is set.

    The keys of each file override those of the files before it. A first file without a `name` is
    named after itself; a later one adds its own, unless it sets `name`.
    """
    tree: Tree = {}
    origins: Origins = {}
    for path in paths:
        layer, layer_origins = _read_file(path, (), [])
        layer.setdefault("name", f"{tree['name']}_{path.stem}" if tree else path.stem)
        _merge(tree, layer)
        origins.update(layer_origins)
    return tree, origins


def _read_file(path: Path, chain: Tuple[Path, ...], done: List[Path]) -> Tuple[Tree, Origins]:
    """Read one file with all that it includes.

    Args:
        chain: the files that include it.
        done: those read so far, to which it is added.
    """
    done.append(path)
    if len(done) > MOST_FILES:
        raise UserError(f"{done[0]} includes more than {MOST_FILES} files, counting repeated ones")
    if path.resolve() in chain:
        raise UserError(f"{path} includes itself, by way of {' → '.join(map(str, chain))}")
    own, own_origins = read_mapping(path)
    included = own.pop("include", [])
    place = f"{own_origins.get(('include',))}: include:"
    if not isinstance(included, list) or not all(isinstance(item, str) for item in included):
        raise UserError(f"{place} must be a list of files, e.g. [../model/clc.yaml]")
    tree: Tree = {}
    origins: Origins = {}
    for name in included:
        part = path.parent / name
        if part.suffix not in (".yaml", ".yml"):
            raise UserError(f"{place} {part} is not named as YAML (.yaml)")
        if not os.path.exists(part):  # nor one whose name is too long
            raise UserError(f"{place} there is no '{part}'")
        part_tree, part_origins = _read_file(part, (*chain, path.resolve()), done)
        _merge(tree, part_tree)
        origins.update(part_origins)
    _merge(tree, own)
    return tree, {**origins, **own_origins}


def read_mapping(path: Path) -> Tuple[Tree, Origins]:
    """Read one file as it stands, and note where each key is set.

    Raises:
        UserError: it cannot be read, is not YAML or not a mapping, or sets a key twice.
    """
    origins: Origins = {}
    with _told(path, "the configuration "):
        loader = _Loader(_text_of(path))
        node = loader.get_single_node()
        tree = _construct(loader, node, path, (), origins) if node is not None else {}
    if not isinstance(tree, dict):
        raise UserError(f"{path}: a configuration is a mapping of keys, e.g. 'training:'")
    return tree, origins


def read_node(path: Path, *, most_bytes: int) -> Optional[yaml.Node]:
    """Return what is in a file that is no configuration, with its lines; None if it is empty.

    Raises:
        UserError: it cannot be read, is not YAML or larger than `most_bytes`.
    """
    with _told(path):
        return _Loader(_text_of(path, most_bytes)).get_single_node()


@contextmanager
def _told(path: Path, what: str = "") -> Iterator[None]:
    """Say of a file that is no YAML where it is not.

    Args:
        what: it is, for the sentence that it cannot be read.
    """
    try:
        yield
    except OSError as error:
        raise UserError(f"cannot read {what}{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8 text (byte {error.start})") from error
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise UserError(f"{path}, line {line}: not YAML ({error.problem})") from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:  # a forbidden character, a date
        raise UserError(f"{path}: not YAML that can be read ({type(error).__name__})") from error


def _text_of(path: Path, most_bytes: int = MOST_BYTES) -> str:
    """Read a file that is one, and no larger than a configuration can be."""
    if path.exists() and not path.is_file():
        raise UserError(f"{path} is not a file: name a YAML file, e.g. configs/quickstart.yaml")
    with path.open("rb") as file:
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise UserError(f"{path} is larger than the {most_bytes:,} bytes that are read of YAML")
    return content.decode("utf-8")


def _construct(
    loader: _Loader, node: yaml.Node, file: Path, path: KeyPath, origins: Origins
) -> Any:
    """Convert a YAML node to a value, note where each key is set and refuse repeated keys."""
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
    """Merge `other` into `tree`: mappings key by key, other values replaced."""
    for key, value in other.items():
        if isinstance(value, dict) and isinstance(tree.get(key), dict):
            _merge(tree[key], value)
        else:
            tree[key] = value


def leaves(tree: Mapping[str, Any], above: str = "") -> Iterator[Tuple[str, Any]]:
    """Yield (dotted key, value) of nested mappings, in their order.

    Example:
        >>> list(leaves({"a": {"b": 1, "c": [2]}, "d": None}))
        [('a.b', 1), ('a.c', [2]), ('d', None)]
    """
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value


def override(tree: Tree, origins: Origins, text: str) -> None:
    """Apply one `a.b=value` in place; the value is read as YAML."""
    name, equals, value_text = text.partition("=")
    if not equals or not all(name.strip().split(".")):
        raise UserError(f"--set {text}: write it as key.path=value, e.g. --set training.epochs=3")
    try:
        value = load(value_text)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        why = f" ({error.problem})" if isinstance(error, yaml.MarkedYAMLError) else ""
        raise UserError(f"--set {text[:MOST_QUOTED]}: the value is not YAML{why}") from error
    put(tree, origins, name.strip(), value, f"--set {text}")


def put(tree: Tree, origins: Origins, name: str, value: Any, origin: str) -> None:
    """Set one dotted key in place; a mapping is merged key by key with the one that is there."""
    path = tuple(name.split("."))
    branch = tree
    for key in path[:-1]:
        if not isinstance(branch.setdefault(key, {}), dict):
            branch[key] = {}
        branch = branch[key]
    _merge(branch, {path[-1]: value})
    origins[path] = origin
