"""Records, one per utterance: the meaning of a JSON line's keys or a table's columns."""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Mapping, Set, Tuple

from edp_mx.data.readers.assembly import Assembler, Chunk, tag_chunks
from edp_mx.data.readers.columns_config import NONE
from edp_mx.data.readers.replies import LABEL, checked_tokens, decide_replies
from edp_mx.data.readers.without_slots import decide_slots, refuse_slots_elsewhere
from edp_mx.data.tokenization import split_tokens
from edp_mx.data.utterance import Utterance, joined
from edp_mx.errors import UserError
from edp_mx.runtime.json_text import read_json

_USUAL: Dict[str, Tuple[str, ...]] = {
    "text": ("text", "sentence", "content"),
    "tokens": ("tokens",),
    "slots": ("slots", "ner_tags"),
    "spans": ("spans",),
    "second": (),
    "prompt": ("prompt",),
    "reply": ("reply",),
    "intent": ("intent", "label", "category"),
    "user": ("user",),
}
_NEEDED = (("text", "tokens"), ("intent",))  # one of each
_SLOTS = ("slots", "spans")
_MOST_KNOWN = 1000  # sets of keys


class RecordReader:
    """Makes utterances of records.

    Args:
        assembler: checks them, and has the settings by which they are read.
        what: what a record has, "key" or "column".
    """

    def __init__(self, assembler: Assembler, what: str) -> None:
        self._assembler, self._config, self._what = assembler, assembler.columns, what
        path = self._config.label_names
        self._label_names = _read_label_names(path) if path else {}
        self._absent: List[str] = []
        if self._config.slots == NONE:
            self._absent += _SLOTS
        if self._config.intent == NONE:
            self._absent += ["intent"]
        self._known: Dict[Tuple[str, ...], Dict[str, str]] = {}

    def names_among(self, keys: Iterable[str], place: str) -> Dict[str, str]:
        """Return what the keys of a record are called, by the settings' own names for them.

        Raises:
            UserError: something that is needed, or that the settings name, is missing.
        """
        present = tuple(keys)
        known = self._known.get(present)
        if known is None:
            known = self._find_names(present, place)
            if len(self._known) < _MOST_KNOWN:  # where each record has keys of its own
                self._known[present] = known
        return known

    def read(
        self, record: Mapping[str, Any], names: Mapping[str, str], *, id: str, place: str
    ) -> Utterance:
        """Return the utterance of a record, by `names_among` its keys; `place` begins an error.

        Edge cases: of text and tokens the tokens are read; of slots and spans the slots. A span
            ends a token, also within a word. A prompt and its reply are read as one utterance. A
            corpus whose first record has neither slots nor spans is read without slots.
        """
        if "reply" in names:
            prompt, reply = (
                _items(record, names[side], {str}, place) for side in ("prompt", "reply")
            )
            tokens = checked_tokens(prompt, reply, place)
            tags = ["O"] * len(tokens)
        elif "spans" in names and "slots" not in names:
            tokens, tags = self._tag_spans(record, names, place)
        else:
            tokens = _items(record, names.get("tokens") or names["text"], {str}, place)
            tags = ["O"] * len(tokens)
            if "slots" in names:
                tags = _items(record, names["slots"], {str, int}, place)
                if names["slots"] in self._label_names or not set(map(type, tags)) <= {str}:
                    tags = [self._label(tag, names["slots"], place) for tag in tags]
            elif self._assembler.has_slots is False:
                known, count = names.values(), len(tokens)
                refuse_slots_elsewhere(record, known, count=count, what=self._what, place=place)
        if "second" in names:
            second = _items(record, names["second"], {str}, place)
            tokens, tags = joined(tokens, second), [*tags, *["O"] * (1 + len(second))]
        user = record[names["user"]] if "user" in names else None
        if user is not None and not isinstance(user, str):
            raise UserError(f'{place}: "{names["user"]}" must be a string; leave it out if unknown')
        intent = record[names["intent"]] if "intent" in names else None
        if intent is None:
            intent = LABEL if "reply" in names else ""
        else:
            intent = self._label(intent, names["intent"], place)
        return self._assembler.assemble(tokens, tags, intent, id=id, place=place, user=user)

    def _find_names(self, present: Tuple[str, ...], place: str) -> Dict[str, str]:
        found: Dict[str, str] = {}
        spelled = {name.lower(): name for name in present}  # "Text" is "text", too
        spelled.update((name, name) for name in present)
        for field, usual in _USUAL.items():
            if field in self._absent:
                continue
            wanted = getattr(self._config, field)
            here = [spelled[name] for name in usual if name in spelled]
            if wanted is not None:
                here = [wanted] if wanted in present else []
            if here:
                found[field] = here[0]
            elif wanted is not None:
                raise UserError(
                    f'{place}: the {self._what} "{wanted}", which data.columns.{field} names, is '
                    f"missing; there are {', '.join(present)}"
                )
        is_prompted = self._is_prompted(found, place)
        decide_replies(self._assembler, is_prompted, place=place)
        if is_prompted:
            left = ("prompt", "reply", "intent", "user")
            return {field: name for field, name in found.items() if field in left}
        found = {field: name for field, name in found.items() if field not in ("prompt", "reply")}
        for fields in _NEEDED:
            if not any(field in found or field in self._absent for field in fields):
                names = " or ".join(f'"{name}"' for field in fields for name in _USUAL[field])
                key = f"data.columns.{fields[0]} (--columns {fields[0]}=NAME)"
                raise UserError(
                    f"{place}: the {self._what} {names} is missing; there are "
                    f"{', '.join(present)}, of which {key} can name another"
                )
        if "slots" not in self._absent:
            has_slots = any(field in found for field in _SLOTS)
            decide_slots(self._assembler, has_slots, present=present, what=self._what, place=place)
        return found

    def _is_prompted(self, found: Mapping[str, str], place: str) -> bool:
        """Return whether a prompt and its reply are read; refuse one without the other.

        A text is read rather than they, unless the settings name one of them.
        """
        sides = [side for side in ("prompt", "reply") if side in found]
        is_named = self._config.prompt is not None or self._config.reply is not None
        has_text = "text" in found or "tokens" in found
        if not sides or (has_text and not is_named):
            return False
        for side in ("prompt", "reply"):
            if side not in sides:
                raise UserError(
                    f'{place}: the {self._what} "{side}" is missing beside "{found[sides[0]]}"; '
                    f"data.columns.{side} can name another"
                )
        return True

    def _label(self, value: Any, name: str, place: str) -> str:
        """Return the name of a label, which may be a number."""
        known = self._label_names.get(name)
        is_number = isinstance(value, int) and not isinstance(value, bool)
        if isinstance(value, str) and known is not None and value.isdecimal():
            value, is_number = int(value[:20]), True
        if not is_number:
            if not isinstance(value, str):
                raise UserError(
                    f'{place}: "{name}" holds {value!r}; labels are strings or whole numbers'
                )
            return value
        if known is None:
            raise UserError(
                f'{place}: "{name}" holds the number {value}; let data.columns.label_names name a '
                f'file with {{"{name}": [the names of all numbers from 0]}}'
            )
        if not 0 <= value < len(known):
            raise UserError(
                f'{place}: "{name}" holds the number {value}, but {self._config.label_names} has '
                f"names for 0 to {len(known) - 1}"
            )
        return known[value]

    def _tag_spans(
        self, record: Mapping[str, Any], names: Mapping[str, str], place: str
    ) -> Tuple[List[str], List[str]]:
        """Return the tokens and tags of a text with spans of characters."""
        text = record.get(names.get("text", ""))
        spans = record[names["spans"]] or []
        if not isinstance(text, str):
            raise UserError(f'{place}: "{names["spans"]}" needs the text beside it, as a string')
        if not isinstance(spans, list) or not all(map(_is_span, spans)):
            raise UserError(
                f'{place}: "{names["spans"]}" is not a list of {{"start", "end", "label"}}'
            )
        chunks: List[Chunk] = []
        end = 0
        for span in sorted(spans, key=lambda span: span["start"]):
            start, stop = span["start"], span["end"]
            if not end <= start < stop <= len(text) or not text[start:stop].strip():
                raise UserError(
                    f"{place}: the span {start} to {stop} overlaps another, holds no word or leads "
                    f"out of the text, which has {len(text)} characters"
                )
            chunks += [(text[end:start], None), (text[start:stop], span["label"])]
            end = stop
        return tag_chunks([*chunks, (text[end:], None)])


def _is_span(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and all(type(value.get(key)) is int for key in ("start", "end"))
        and isinstance(value.get("label"), str)
        and value["label"] != ""
    )


def _read_label_names(path: str) -> Dict[str, List[str]]:
    """Return the lists of names in a file, by key or column; other entries are passed over."""
    value = read_json(path)
    features = value.get("features", value) if isinstance(value, dict) else {}
    names: Dict[str, List[str]] = {}
    for column, entry in features.items() if isinstance(features, dict) else ():
        while isinstance(entry, dict):  # Hugging Face: a ClassLabel, perhaps in a Sequence
            entry = entry.get("names", entry.get("feature"))
        if isinstance(entry, list) and all(isinstance(name, str) for name in entry):
            names[column] = entry
    if not names:
        raise UserError(
            f'{path}: data.columns.label_names needs lists of names, as {{"ner_tags": ["O", …]}}'
        )
    return names


def _items(record: Mapping[str, Any], name: str, kinds: Set[type], place: str) -> List[Any]:
    """Return a list, or the items of a text that blanks separate."""
    value = record[name]
    if value is None or isinstance(value, str):
        return split_tokens(value or "")
    if not isinstance(value, list) or not set(map(type, value)) <= kinds or "" in value:
        raise UserError(f'{place}: "{name}" is not a list of non-empty strings, nor a text')
    return value
