"""From BIO tags to typed spans, as conlleval reads them, and the scores of a corpus of them."""

from __future__ import annotations

from typing import Any, Iterable, List, NamedTuple, Optional, Sequence, Tuple

from edp_mx.errors import UserError


class Span(NamedTuple):
    """One slot: tokens `start` to `end` (exclusive), with the name `type`."""

    type: str
    start: int
    end: int


def spans_of(tags: Iterable[str]) -> List[Span]:
    """Return the spans of one utterance from left to right; they never overlap.

    A span opens at B-x, or at I-x where no x is open; it closes at O, at a B- or at another name.

    Source: conlleval; seqeval's default mode.

    Examples:
        >>> [tuple(span) for span in spans_of(["O", "I-to", "I-to", "I-from", "B-from"])]
        [('to', 1, 3), ('from', 3, 4), ('from', 4, 5)]
    """
    spans: List[Span] = []
    open_span: Optional[Tuple[str, int]] = None  # its name and first token
    end = 0
    for position, tag in enumerate(tags):
        prefix, name = split_tag(tag)
        end = position + 1
        if open_span is not None and (prefix != "I" or name != open_span[0]):
            spans.append(Span(open_span[0], open_span[1], position))
            open_span = None
        if prefix != "O" and open_span is None:
            open_span = (name, position)
    if open_span is not None:
        spans.append(Span(open_span[0], open_span[1], end))
    return spans


def split_tag(tag: str) -> Tuple[str, str]:
    """Return the prefix and the name of a BIO tag; "B" and "I" alone have the name "_"."""
    if tag == "O":
        return "O", ""
    prefix, dash, name = tag.partition("-")
    if prefix not in ("B", "I") or (dash and not name):
        raise UserError(f"slot tag {tag!r} is not BIO; write O, B-name or I-name")
    return prefix, name or "_"


def balanced(tags: Sequence[str]) -> Tuple[str, ...]:
    """Return the tags with the same spans, each of which opens with B-.

    Example:
        >>> balanced(["O", "I-to", "I-to", "I-from", "B-from"])
        ('O', 'B-to', 'I-to', 'B-from', 'B-from')
    """
    before = "O"
    whole: List[str] = []
    for tag in tags:
        if tag[:1] == "I" and before[1:] != tag[1:]:
            tag = f"B{tag[1:]}"
        whole.append(tag)
        before = tag
    return tuple(whole)


def bracketed(tokens: Sequence[str], tags: Sequence[str]) -> str:
    """Return the text of an utterance with its spans in brackets.

    Example:
        >>> bracketed(["call", "my", "mum"], ["O", "B-who", "I-who"])
        'call [who: my mum]'
    """
    words = list(tokens)
    for span in spans_of(tags):
        words[span.start] = f"[{span.type}: {words[span.start]}"
        words[span.end - 1] += "]"
    return " ".join(words)


def check_pairs(references: Sequence[Any], hypotheses: Sequence[Any]) -> None:
    """Refuse anything but one hypothesis per reference, and an empty corpus."""
    if len(references) != len(hypotheses):
        raise UserError(
            f"there are {len(references)} references but {len(hypotheses)} hypotheses; "
            "each utterance needs one of both"
        )
    if not references:
        raise UserError("there is nothing to score: no utterances")
