"""Corpora whose records have no column or key for slots: read without, and never by mistake."""

from __future__ import annotations

import logging
from functools import lru_cache
from typing import Any, Container, Mapping, Tuple

from edp_mx.data.readers.assembly import Assembler
from edp_mx.errors import UserError

logger = logging.getLogger(__name__)


def decide_slots(
    assembler: Assembler, has_slots: bool, *, present: Tuple[str, ...], what: str, place: str
) -> None:
    """Have the first record of a corpus decide whether it has slots, and refuse one that differs.

    Args:
        has_slots: whether a key or column of this record is known to hold slots.
        present: its keys or columns, which a remark on the console names if none does.
    """
    if assembler.has_slots is None:
        assembler.has_slots, assembler.slots_place = has_slots, place
        if not has_slots:
            _remark(place, what, ", ".join(present))
    elif has_slots and not assembler.has_slots:
        raise UserError(
            f"{place}: there are slots here, but {assembler.slots_place} has none; give every "
            "record its slots, or set data.columns.slots to none to read the corpus without"
        )
    elif assembler.has_slots and not has_slots:
        raise UserError(
            f'{place}: the {what} "slots" or "ner_tags" or "spans" is missing, but '
            f"{assembler.slots_place} has one; data.columns.slots can name another, and none reads "
            "the corpus without slots"
        )


@lru_cache(maxsize=None)  # a corpus may be read twice, but the remark is made once
def _remark(place: str, what: str, present: str) -> None:
    sentence = UserError(  # which spells out what would move a terminal
        f'{place}: no {what} "slots", "ner_tags" or "spans", so the corpus is read without slots. '
        f"There are {present}; if one of these holds the slots, name it by data.columns.slots "
        "(--columns slots=NAME)"
    )
    logger.warning("%s", sentence)


def refuse_slots_elsewhere(
    record: Mapping[str, Any], names: Container[str], *, count: int, what: str, place: str
) -> None:
    """Refuse a record of `count` tokens without slots, if one not in `names` looks like slots."""
    for name, value in record.items():
        if name not in names and _look_like_slots(value, count):
            raise UserError(
                f'{place}: the {what} "{name}" looks like slots but is not read; set '
                f"data.columns.slots (or spans) to its name, as with --columns slots={name}, or "
                "data.columns.slots to none to read the corpus without slots"
            )


def _look_like_slots(value: Any, count: int) -> bool:
    """Return whether a value is a tag for each of `count` tokens, or spans of characters."""
    if isinstance(value, str):
        tags: Any = value.split() if value.startswith(("O", "B-", "I-")) else []
    else:
        tags = value if isinstance(value, list) else []
    if tags and all(isinstance(each, dict) and {"start", "end"} <= each.keys() for each in tags):
        return True
    return len(tags) == count and all(
        type(each) is int or isinstance(each, str) and (each == "O" or each[:2] in ("B-", "I-"))
        for each in tags
    )
