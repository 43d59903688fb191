"""Persona-Chat in ConvAI2's text form: numbered lines, which begin at 1 with each dialogue."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Iterator, List

from edp_mx.data.readers.assembly import Assembler, read_bytes_by_line, read_lines
from edp_mx.data.readers.format import Format, file_or_folder
from edp_mx.data.readers.replies import assemble_reply
from edp_mx.data.utterance import Utterance
from edp_mx.errors import UserError

TURNS = 3  # before the reply, as in DSTC8's system turns
_LINE = re.compile(r"(\d{1,6}) (.*)")
_PERSONA = re.compile(r"(?:your|partner's) persona: ")
_FIRST = re.compile(rb"1 (?:(?:your|partner's) persona: |[^\t]*\t[^\t])")


def _part_of(file: Path) -> str:
    """Return what a name begins with; the whole release has several files of each part."""
    return re.split("[_.]", file.name)[0]


def _begins_dialogue(path: Path) -> bool:
    return bool(_FIRST.match(next(read_bytes_by_line(path), (1, b""))[1]))


def _read(path: Path, assembler: Assembler, id_prefix: str) -> Iterator[Utterance]:
    """Stream the second speaker's turns, each with the persona and the turns before as prompt.

    Edge cases: the user is the dialogue; candidates behind a reply are not read.
    """
    dialogue = previous = 0
    persona: List[str] = []
    turns: List[str] = []
    for number, line in read_lines(path):
        place = f"{path}, line {number}"
        match = _LINE.match(line)
        if match is None or int(match[1]) not in (1, previous + 1):
            raise UserError(
                f"{place}: a line begins with its number in the dialogue, {previous + 1} or 1"
            )
        previous, text = int(match[1]), match[2]
        if previous == 1:
            dialogue, persona, turns = dialogue + 1, [], []
        if _PERSONA.match(text):
            persona.append(text)
            continue
        said, tab, rest = text.partition("\t")
        if not tab:
            raise UserError(f"{place}: neither a persona nor a turn with a tab before its reply")
        reply = rest.partition("\t")[0]
        turns.append(f"user: {said}")
        yield assemble_reply(
            assembler,
            " ".join([*persona, *turns[-TURNS:]]),
            reply,
            id=f"{id_prefix}/{number}",
            place=place,
            user=f"{id_prefix}/{dialogue}",
        )
        turns.append(f"system: {reply}")


_find = partial(
    file_or_folder, suffixes=(".txt", ".txt.gz"), is_one=_begins_dialogue, part_of=_part_of
)
FORMAT = Format("persona_chat", "train_self_original.txt of ConvAI2", _find, _read)
