"""DSTC8 (Schema-Guided Dialogue) as released: `dialogues_*.json` in `train`, `dev` and `test`."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from pathlib import Path
from typing import Any, Iterator, List, NamedTuple, Optional, Tuple

from edp_mx.data.readers.assembly import Assembler
from edp_mx.data.readers.format import Format, Sources, sources_by_part
from edp_mx.data.readers.system_turns import assemble_turn
from edp_mx.data.tokenization import WORD_OR_PUNCTUATION
from edp_mx.data.utterance import Utterance
from edp_mx.errors import UserError
from edp_mx.runtime.json_text import read_json

_FILES = "dialogues_*.json"
MOST_OF_A_TURN, MOST_SPANS = 2**16, 100  # characters; slots
CONTEXT = 3  # turns before one of the system's
# What a turn does, where it announces no intent: the first of these.
_ACTS = ("NEGATE_INTENT", "AFFIRM_INTENT", "REQUEST_ALTS", "SELECT", "REQUEST", "NEGATE", "AFFIRM",
         "INFORM", "THANK_YOU", "GOODBYE")  # fmt: skip


class Span(NamedTuple):
    """A slot's place in the characters of a turn."""

    start: int
    end: int
    slot: str


def _find(path: Path) -> Sources:
    """A file, the folder itself, or its folders `train`, `dev` and `test`."""
    if _files_of(path):
        return {"": [(path, "")]}
    folders = [found.parent for found in path.glob(f"[!.]*/{_FILES}")]
    return sources_by_part({folder.name: folder for folder in folders})


def _files_of(source: Path) -> List[Path]:
    """The files of dialogues in a folder, or the file itself."""
    if source.is_file():
        return [source] if source.match(_FILES) else []
    return sorted(source.glob(_FILES))


def _read(source: Path, assembler: Assembler, id_prefix: str) -> Iterator[Utterance]:
    """Stream the users' turns, or with `data.columns.prompt` the system's as text to generate.

    Ids are `<id_prefix>/<dialogue>/<turn>`, turns counted from 1. The intent is the first that the
    turn announces, else its dialogue act. The user is the dialogue; since the numbers of dialogues
    repeat between parts, the name of the part comes before those of dev and test. A word that a
    span ends in is cut there, and of two spans of the same words the first counts. A turn without a
    word is left out.
    """
    part = "" if id_prefix in ("", "train") else f"{id_prefix}_"
    for file in _files_of(source):
        with assembler.file_errors:  # one that goes on reads the next file
            yield from _turns(file, assembler, id_prefix, part)


def _turns(file: Path, assembler: Assembler, id_prefix: str, part: str) -> Iterator[Utterance]:
    """Stream the turns of one file."""
    for dialogue in _of_type(list, read_json(file), "a list of dialogues", str(file)):
        name = _value(dialogue, "dialogue_id", str, str(file))
        turns = _value(dialogue, "turns", list, f"{file}, dialogue {name}")
        if assembler.columns.prompt is not None:
            id = "/".join(filter(None, (id_prefix, name)))
            place = f"{file}, dialogue {name}"
            yield from _replies(turns, assembler, id=id, place=place, user=f"{part}{name}")
            continue
        for number, turn in enumerate(turns, start=1):
            place = f"{file}, dialogue {name}, turn {number}"
            id = "/".join(filter(None, (id_prefix, name, str(number))))
            with assembler.errors:
                said = _said(turn, assembler, id=id, place=place, user=f"{part}{name}")
                if said is not None:
                    yield said


def _said(
    turn: Any, assembler: Assembler, *, id: str, place: str, user: str
) -> Optional[Utterance]:
    """Return what a user says in a turn; None if it is the system's, or without a word."""
    if _value(turn, "speaker", str, place) != "USER":
        return None
    text = _value(turn, "utterance", str, place)
    frames = _value(turn, "frames", list, place)
    spans = _spans(frames, place)
    if len(spans) > MOST_SPANS or len(text) > MOST_OF_A_TURN:
        raise UserError(
            f"{place}: a turn of {len(text):,} characters and {len(spans):,} slots is none of a "
            "dialogue"
        )
    tokens, tags = tag_spans(text, spans)
    if not tokens:
        return None
    intent = _intent(frames, place)
    return assembler.assemble(tokens, tags, intent, id=id, place=place, user=user)


def _replies(
    turns: List[Any], assembler: Assembler, *, id: str, place: str, user: str
) -> Iterator[Utterance]:
    """Stream the system's turns of one dialogue, each with its acts and the turns before it."""
    context: List[str] = []
    for number, turn in enumerate(turns, start=1):
        here = f"{place}, turn {number}"
        speaker, text = (_value(turn, key, str, here) for key in ("speaker", "utterance"))
        if speaker == "SYSTEM":
            record = {
                "dialogue": user,
                "turn": number,
                "acts": _acts(_value(turn, "frames", list, here), here),
                "context": context[-CONTEXT:],
                "text": text,
            }
            reply = assemble_turn(assembler, record, id=f"{id}/{number}", place=here)
            if reply is not None:
                yield reply
        context.append(f"{speaker.lower()}: {text}")


def _acts(frames: List[Any], place: str) -> List[List[Any]]:
    """The acts of all services as `[service, act, slot, values]`."""
    return [
        [
            _value(frame, "service", str, place),
            _value(action, "act", str, place),
            _value(action, "slot", str, place),
            _value(action, "values", list, place),
        ]
        for frame in frames
        for action in _value(frame, "actions", list, place)
    ]


def tag_spans(text: str, spans: List[Span]) -> Tuple[List[str], List[str]]:
    """Return the tokens of a text in lower case, words and punctuation apart, and their BIO tags.

    Example:
        >>> tag_spans("To Maria's, please", [Span(3, 8, "name")])
        (['to', 'maria', "'s", ',', 'please'], ['O', 'B-name', 'O', 'O', 'O'])
    """
    edges = sorted({edge for span in spans for edge in (span.start, span.end)})
    tokens: List[str] = []
    tags: List[str] = []
    last = None
    for match in WORD_OR_PUNCTUATION.finditer(text):
        first, end = match.span()
        cuts = [first, *edges[bisect_right(edges, first) : bisect_left(edges, end)], end]
        for a, b in zip(cuts, cuts[1:]):
            span = next((s for s in spans if s.start <= a and b <= s.end), None)
            tokens.append(text[a:b].lower())
            tags.append("O" if span is None else f"{'I' if span is last else 'B'}-{span.slot}")
            last = span
    return tokens, tags


def _spans(frames: List[Any], place: str) -> List[Span]:
    """The spans of all services, in their order; only slots with free values have any."""
    return [
        Span(
            _value(slot, "start", int, place),
            _value(slot, "exclusive_end", int, place),
            _value(slot, "slot", str, place),
        )
        for frame in frames
        for slot in _value(frame, "slots", list, place)
    ]


def _intent(frames: List[Any], place: str) -> str:
    """The announced intent, else the first of the acts."""
    acts = set()
    for frame in frames:
        for action in _value(frame, "actions", list, place):
            act = _value(action, "act", str, place)
            acts.add(act)
            if act == "INFORM_INTENT":
                values = _value(action, "values", list, place)
                return str(_of_type(str, values[0] if values else None, "an intent", place))
    known = next((act for act in _ACTS if act in acts), None)
    if known is None:
        raise UserError(f"{place}: no intent, and no act that is known ({', '.join(sorted(acts))})")
    return known.lower()


def _value(record: Any, key: str, kind: type, place: str) -> Any:
    """The value of a key that must be there, and of a type."""
    value = record.get(key) if isinstance(record, dict) else None
    return _of_type(kind, value, f'"{key}" ({kind.__name__})', place)


def _of_type(kind: type, value: Any, wanted: str, place: str) -> Any:
    if not isinstance(value, kind):
        raise UserError(f"{place}: expected {wanted}, as the release of DSTC8 has it")
    return value


FORMAT = Format("dstc8", "train/dialogues_*.json", _find, _read, _files_of, depth=2)
