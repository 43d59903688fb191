"""Shared by the readers of text to generate: a prompt and its reply become one utterance."""

from __future__ import annotations

from pathlib import Path
from typing import Callable, Dict, Iterable, List, Optional, Sequence

from edp_mx.data.readers.assembly import Assembler, split_tokens
from edp_mx.data.readers.format import Sources, sources_by_part
from edp_mx.data.reply import LABEL, join_reply
from edp_mx.data.utterance import REPLY, Utterance
from edp_mx.errors import UserError


def one_file_a_part(files: Iterable[Path], part_of: Callable[[Path], str]) -> Sources:
    """Return files as sources by the names of their parts, such as "train" and "dev".

    Raises:
        UserError: two files are the same part, or one is none beside others that are.
    """
    found: Dict[str, Path] = {}
    for file in files:
        part = part_of(file)
        other = found.setdefault(part, file)
        if other != file:
            raise UserError(
                f"{other} and {file} would both be the part {part}; name one file, or put one of "
                "each part into a folder of its own"
            )
    return sources_by_part(found)


def assemble_reply(
    assembler: Assembler,
    prompt: str,
    reply: str,
    *,
    id: str,
    place: str,
    user: Optional[str] = None,
) -> Utterance:
    """Return one checked utterance, cut at blanks; `place`, file and line, begins every error."""
    tokens = checked_tokens(split_tokens(prompt), split_tokens(reply), place)
    slots = ["O"] * len(tokens)
    return assembler.assemble(tokens, slots, LABEL, id=id, place=place, user=user)


def checked_tokens(prompt: Sequence[str], reply: Sequence[str], place: str) -> List[str]:
    """Return `join_reply` of two sides, neither of which may be empty or hold `<|reply|>`."""
    for name, tokens in (("prompt", prompt), ("reply", reply)):
        if not tokens:
            raise UserError(f"{place}: the {name} is empty; remove the utterance")
        if REPLY in tokens:
            raise UserError(
                f"{place}: the {name} holds {REPLY}, which stands between a prompt and its reply; "
                "remove it from the text"
            )
    return join_reply(prompt, reply)
