"""Rasa's training data: `nlu: - intent: x / examples: |`, with `[value](slot)` in the examples."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Dict, Iterator, List, Optional, Tuple

import yaml

from edp_mx.data.readers.assembly import Assembler, Chunk, read_bytes_by_line, tag_chunks
from edp_mx.data.readers.format import Format, file_or_folder
from edp_mx.data.readers.record_errors import RecordErrors
from edp_mx.data.utterance import Utterance
from edp_mx.errors import UserError
from edp_mx.runtime.json_text import json_in
from edp_mx.runtime.yaml_tree import read_node

MOST_BYTES = 2**24  # of a file
_OTHERS = ("synonym", "regex", "lookup")  # entries without utterances
# [value](slot), [value](slot:normal form), [value]{"entity": "slot", "role": "…"}
_ENTITY = re.compile(r"\[([^\[\]]+)\](?:\(([^():]+)(?::[^()]+)?\)|(\{[^{}]*\}))")


def _has_examples(path: Path) -> bool:
    """Return whether a file has `nlu:`; other YAML beside such files is none of a corpus."""
    return any(line.startswith(b"nlu:") for _, line in read_bytes_by_line(path))


def _read(path: Path, assembler: Assembler, id_prefix: str) -> Iterator[Utterance]:
    """Read the examples of all intents.

    Edge cases: an entity with a role is the slot `entity.role`. Normal forms of values, groups,
    metadata, synonyms, regular expressions and lookup tables are not read. Tokens are cut at blanks
    and at the edges of entities.
    """
    for number, (intent, text, line) in enumerate(_examples(path, assembler.errors), start=1):
        place = f"{path}, line {line}"
        with assembler.errors:
            tokens, tags = tag_chunks(_chunks(text, place))
            id = f"{id_prefix}/{number}"
            yield assembler.assemble(tokens, tags, intent, id=id, place=place)


def _examples(path: Path, errors: RecordErrors) -> Iterator[Tuple[str, str, int]]:
    """Yield (intent, text, number of the line) of each example."""
    top = _keys(read_node(path, most_bytes=MOST_BYTES), path)
    for entry in _items(top.get("nlu"), "nlu", path):
        keys = _keys(entry, path)
        if "intent" not in keys:
            if not any(name in keys for name in _OTHERS):
                raise UserError(
                    f"{_place(entry, path)}: an entry without intent, {', '.join(_OTHERS)}"
                )
            continue
        intent = _text(keys["intent"], "intent", path).strip()
        examples = keys.get("examples")
        if examples is None:
            raise UserError(f"{_place(entry, path)}: the intent {intent!r} has no examples")
        if isinstance(examples, yaml.ScalarNode):
            for text, line in _dashed(examples, path, errors):
                yield intent, text, line
            continue
        for example in _items(examples, "examples", path):
            is_mapping = isinstance(example, yaml.MappingNode)
            node = _keys(example, path).get("text") if is_mapping else example
            yield intent, _text(node or example, "text", path), example.start_mark.line + 1


def _dashed(node: yaml.ScalarNode, path: Path, errors: RecordErrors) -> Iterator[Tuple[str, int]]:
    """Yield the lines of a text, each of which begins with a dash, with their numbers."""
    is_literal = node.style == "|"
    for at, line in enumerate(node.value.split("\n")):
        number = node.start_mark.line + (2 + at if is_literal else 1)
        if not line.strip():
            continue
        with errors:
            if not line.lstrip().startswith("-"):
                raise UserError(f'{path}, line {number}: an example does not begin with "- "')
            yield line.lstrip()[1:], number


def _chunks(text: str, place: str) -> List[Chunk]:
    """Return an example as chunks of text, with the slots of its entities."""
    chunks: List[Chunk] = []
    end = 0
    for match in [*_ENTITY.finditer(text), None]:
        plain = text[end : match.start() if match else len(text)]
        if "[" in plain or "]" in plain:
            raise UserError(
                f"{place}: a bracket that belongs to no [value](slot) or "
                '[value]{"entity": "slot"}; write each slot so, and remove other brackets'
            )
        chunks.append((plain, None))
        if match:
            slot = match[2] if match[2] else _slot_of(match[3], place)
            chunks.append((match[1], "_".join(slot.split())))
            if not chunks[-1][1] or not match[1].strip():
                raise UserError(f"{place}: a slot without a name or a value")
            end = match.end()
    return chunks


def _slot_of(text: str, place: str) -> str:
    """Return the name of the slot in `{"entity": "city", "role": "departure"}`."""
    names = json_in(text, place)
    parts = [names.get("entity"), names.get("role", "")]
    if not all(isinstance(part, str) for part in parts):
        raise UserError(f'{place}: {text!r} has no "entity" that is a text, or a role that is none')
    return ".".join(filter(None, parts))


def _keys(node: Optional[yaml.Node], path: Path) -> Dict[str, yaml.Node]:
    """Return the values of a mapping; a key that is there twice is refused."""
    if not isinstance(node, yaml.MappingNode):
        raise UserError(f"{_place(node, path)}: not a mapping of keys, as Rasa's training data has")
    keys: Dict[str, yaml.Node] = {}
    for key, value in node.value:
        name = _text(key, "a key", path)
        if name in keys:
            raise UserError(f"{_place(key, path)}: {name!r} is set twice")
        keys[name] = value
    return keys


def _items(node: Optional[yaml.Node], name: str, path: Path) -> List[yaml.Node]:
    if not isinstance(node, yaml.SequenceNode):
        raise UserError(f"{_place(node, path)}: {name} is not a list")
    return node.value


def _text(node: yaml.Node, name: str, path: Path) -> str:
    if not isinstance(node, yaml.ScalarNode):
        raise UserError(f"{_place(node, path)}: {name} is not a text")
    return str(node.value)


def _place(node: Optional[yaml.Node], path: Path) -> str:
    return f"{path}, line {node.start_mark.line + 1 if node is not None else 1}"


_find = partial(file_or_folder, suffixes=(".yml", ".yaml"), is_one=_has_examples)
FORMAT = Format("rasa_yaml", "*.yml with nlu, its intents and examples", _find, _read)
