"""The system's turns of DSTC8 as JSON lines: `{"dialogue", "turn", "acts", "context", "text"}`."""

from __future__ import annotations

import re
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from edp_mx.data.readers.assembly import Assembler, read_json_lines
from edp_mx.data.readers.format import Format, Sources, file_or_folder, first_line
from edp_mx.data.readers.replies import assemble_reply
from edp_mx.data.utterance import Utterance
from edp_mx.errors import UserError
from edp_mx.metrics.quoted_values import quoted

Act = Tuple[str, str, str, List[str]]  # service, act, slot, values
_KEYS = {"dialogue": str, "turn": int, "acts": list, "context": list, "text": str}
_NUMBER = re.compile(r"_\d+$")  # of a service: several have the same name
_OFFER_INTENT = "OFFER_INTENT"  # its value is the name of an intent, which no text repeats


def _find(path: Path) -> Sources:
    """Take a file; or `train`, `dev` and `test` of a folder, if the first line has the keys."""
    sources = file_or_folder(path, (".jsonl", ".jsonl.gz"))
    line = first_line(sources)
    return sources if all(f'"{key}"'.encode() in line for key in _KEYS) else {}


def _read(path: Path, assembler: Assembler, id_prefix: str) -> Iterator[Utterance]:
    """Stream the turns of a file; blank lines are skipped."""
    for number, place, record in read_json_lines(path, assembler.errors):
        with assembler.errors:
            turn = assemble_turn(assembler, record, id=f"{id_prefix}/{number}", place=place)
            if turn is not None:
                yield turn


def assemble_turn(assembler: Assembler, record: Any, *, id: str, place: str) -> Optional[Utterance]:
    """Return a system's turn as the reply to what `data.columns.prompt` says; None without a word.

    The user is the dialogue.
    """
    reading = assembler.columns.prompt or "acts"
    if reading not in _READINGS:
        raise UserError(
            f"{place}: data.columns.prompt must be {' or '.join(_READINGS)} for the turns of a "
            f"dialogue system, not {reading!r}"
        )
    turn = _checked(record, place)
    if not turn["text"].strip():
        return None
    prompt = _READINGS[reading](turn[reading])
    user = turn["dialogue"]
    return assemble_reply(assembler, prompt, turn["text"], id=id, place=place, user=user)


def acts_as_text(acts: List[Act]) -> str:
    """Return the acts of a turn as one line, in which `quoted_values` finds their values.

    Example:
        >>> acts_as_text([("Movies_1", "OFFER", "title", ["Up"]), ("Movies_1", "REQ_MORE", "", [])])
        'movies: offer title = "Up"; req_more'
    """
    return " ".join(
        f"{_NUMBER.sub('', service).lower()}: {'; '.join(map(_act_as_text, of_service))}"
        for service, of_service in groupby(acts, itemgetter(0))
    )


def _act_as_text(act: Act) -> str:
    _, name, slot, values = act
    shown = values if name == _OFFER_INTENT else map(quoted, values)
    words = " ".join(filter(None, (name.lower(), slot)))
    return f"{words} = {', '.join(shown)}" if values else words


# The values of `data.columns.prompt` → how what stands under that key becomes a prompt.
_READINGS: Dict[str, Callable[[Any], str]] = {"acts": acts_as_text, "context": " ".join}


def _checked(record: Any, place: str) -> Dict[str, Any]:
    """Return a record whose values have the right types."""
    for key, kind in _KEYS.items():
        value = record.get(key) if isinstance(record, dict) else None
        if not isinstance(value, kind):
            raise UserError(f'{place}: "{key}" is missing or no {kind.__name__}')
    if not all(map(_is_act, record["acts"])):
        raise UserError(f'{place}: "acts" is not a list of [service, act, slot, [values]]')
    if not all(isinstance(turn, str) for turn in record["context"]):
        raise UserError(f'{place}: "context" is not a list of turns as text')
    return record


def _is_act(value: Any) -> bool:
    return (
        isinstance(value, list)
        and [type(part) for part in value] == [str, str, str, list]
        and all(isinstance(one, str) for one in value[3])
    )


FORMAT = Format("system_turns", "*.jsonl with acts, context and text", _find, _read)
