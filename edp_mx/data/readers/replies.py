"""Shared by the readers of text to generate: a prompt and its reply become one utterance."""

from __future__ import annotations

from typing import List, Optional, Sequence

from edp_mx.data.readers.assembly import Assembler
from edp_mx.data.tokenization import split_tokens
from edp_mx.data.utterance import MASK, REPLY, SEPARATOR, Utterance
from edp_mx.errors import UserError

LABEL = "reply"  # the intent of an utterance that has a prompt and a reply, and no other label


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
    """Return the tokens of an utterance; neither side may be empty, or hold what stands for a piece
    of its own, such as `<|reply|>`."""
    for name, tokens in (("prompt", prompt), ("reply", reply)):
        if not tokens:
            raise UserError(f"{place}: the {name} is empty; remove the utterance")
        for special in (REPLY, SEPARATOR, MASK):
            if special in tokens:
                raise UserError(
                    f"{place}: the {name} holds {special}, which stands for a piece that ends or "
                    "hides a text; remove it from the text"
                )
    return [*prompt, REPLY, *reply]


def decide_replies(assembler: Assembler, has_reply: bool, *, place: str) -> None:
    """Have the first record of a corpus decide whether replies are read; refuse one that differs.

    Args:
        has_reply: whether a prompt and its reply are read of this record.
    """
    if assembler.has_replies is None:
        assembler.has_replies, assembler.replies_place = has_reply, place
    elif assembler.has_replies != has_reply:
        here, first = ("a prompt and its reply are", "a text is")[:: 1 if has_reply else -1]
        raise UserError(
            f"{place}: {here} read here, but {first} at {assembler.replies_place}; give every "
            "record the same keys, or name by data.columns.text or .prompt what is read"
        )
