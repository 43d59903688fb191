"""The values of a prompt, `name = "value"; name = "one", "other"`, and those that a text lacks."""

from __future__ import annotations

import json
import re
from typing import List
from unicodedata import normalize

from edp_mx.runtime.json_text import NotJSON, parse_json

NOT_SAID = frozenset(("true", "false", "yes", "no", "none", "dontcare"))
_VALUE = r'"(?:[^"\\]|\\.)*"'
_VALUES = re.compile(rf"= ?({_VALUE}(?:, ?{_VALUE})*)")
_ONE_VALUE = re.compile(_VALUE)


def quoted(value: str) -> str:
    """Return a value with single blanks as a JSON string, or bare where no text would repeat it.

    Example:
        >>> print(quoted("San  Jose"), quoted('the "Urban Light"'), quoted("True"))
        "San Jose" "the \\"Urban Light\\"" True
    """
    text = " ".join(value.split())
    return text if text.lower() in NOT_SAID else json.dumps(text, ensure_ascii=False)


def quoted_values(prompt: str) -> List[str]:
    """Return the values that stand in quotation marks behind an equals sign, without empty ones.

    Example:
        >>> quoted_values('movies: offer title = "Jaws", "Up"; inform subtitles = True')
        ['Jaws', 'Up']
    """
    groups = _VALUES.findall(prompt)
    found = [_unquoted(text) for group in groups for text in _ONE_VALUE.findall(group)]
    return [value for value in found if value.strip()]


def _unquoted(text: str) -> str:
    """Return the value in quotation marks; where a person wrote no JSON string, what is in them."""
    try:
        return str(parse_json(text))
    except NotJSON:
        return text[1:-1]


def missing_values(prompt: str, text: str) -> List[str]:
    """Return the values in the quotation marks of a prompt that its text does not say.

    A value is said where its words stand in the text one after the other, in upper or lower case,
    with no letter or digit that touches them.

    Example:
        >>> missing_values('offer city = "San Jose"; inform_count count = "1"', "10 in san jose.")
        ['1']
    """
    said = _folded(text)
    return [value for value in quoted_values(prompt) if not _stands_in(_folded(value), said)]


def _stands_in(words: str, text: str) -> bool:
    """Whether no letter, digit or underscore touches the words somewhere in a text."""
    return re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text) is not None


def _folded(text: str) -> str:
    return " ".join(normalize("NFC", text).casefold().split())
