"""How a text becomes the tokens that a model has learned."""

from __future__ import annotations

import re
from typing import Any, Callable, List, Mapping, Optional

from edp_mx.data.utterance import SEPARATOR, are_words, joined
from edp_mx.errors import UserError

Cut = Callable[[str], List[str]]  # makes tokens of a text

# "what's", "18:30" and "$24" are words; a "?" behind one is a token of its own.
WORD_OR_PUNCTUATION = re.compile(r"[$#]?\w+(?:['.,:/&-]\w+)*|[^\w\s]")
# Words are cut at ASCII blanks alone: annotators left the no-break space inside of them. One that
# stands for itself is no word, but fills a column that has a tag beside each.
_COLUMN = re.compile(r"[^ \t\r\n\f\v]+")
_WORD = re.compile(r"(?<![^ \t\r\n\f\v])[^\S \t\r\n\f\v]*\S[^ \t\r\n\f\v]*")
split_tokens: Cut = _COLUMN.findall
split_words: Cut = _WORD.findall
PATTERNS = {"blanks": _WORD.pattern, "punctuation": WORD_OR_PUNCTUATION.pattern}


def with_second(
    tokens: Any, asked: Mapping[str, Any], cut: Cut, *, reads_second: Optional[bool]
) -> Any:
    """Return the tokens of a request in JSON, with those of its `second` text behind them, if any.

    Args:
        reads_second: whether the model was trained on two texts; None where nobody knows. Unless it
            was, a `second` that is no text, such as a number, is a key like any other.
    """
    second = asked.get("second")
    words: Any = cut(second) if isinstance(second, str) else second
    if reads_second is None or not are_words(tokens):
        return tokens
    if "second" not in asked:
        if reads_second and SEPARATOR not in tokens:
            raise UserError(
                'the model reads two texts, and this is one: give the other as "second", or '
                "behind [SEP]"
            )
        return tokens
    if reads_second and are_words(words):
        return joined(tokens, words)
    if reads_second or are_words(words):
        raise UserError('"second" needs a word, and a model of two texts (data.columns.second)')
    return tokens
