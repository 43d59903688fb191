"""Marks behind numbers that hold on a condition, and the footnotes that say it in words."""

from __future__ import annotations

from typing import List, Sequence, Tuple

from edp_mx.runs.file_types import StatedBound

_MARKS = dict(zip("ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻ", "abcdefghijklmnoprstuvwxyz"))


def mark_of(bound: StatedBound, notes: List[str]) -> str:
    """Return the mark of an ε, whose footnote has its conditions, or why it is ∞.

    Args:
        notes: of the table so far, to which a new one is added.

    Example:
        >>> less, notes = StatedBound(8.0, 0.9, conditions=("the words are public",)), []
        >>> mark_of(less, notes), footnotes(notes)
        ('ᵃ', ['ᵃ only if the words are public; otherwise ∞'])
    """
    if bound.number.is_infinite:
        note = f"∞: {bound.reason}"
    else:
        note = f"only if {'; '.join(bound.conditions)}; otherwise ∞"
    notes += [note] if note not in notes else []
    return _mark(notes.index(note))


def footnotes(notes: Sequence[str]) -> List[str]:
    """Return the footnotes of the marks of `mark_of`."""
    return [f"{_mark(i)} {note}" for i, note in enumerate(notes)]


def split_mark(text: str) -> Tuple[str, str]:
    """Return a number without its mark, and the mark as plain letters.

    Example:
        >>> split_mark("10.3ᵃ"), split_mark("10.3")
        (('10.3', 'a'), ('10.3', ''))
    """
    body = text.rstrip("".join(_MARKS))
    return body, "".join(_MARKS[mark] for mark in text[len(body) :])


def split_footnote(text: str) -> Tuple[str, str]:
    """Return the mark of a footnote as plain letters, and its text; "" where it has none."""
    first, _, rest = text.partition(" ")
    body, mark = split_mark(first)
    return (mark, rest) if mark and not body else ("", text)


def _mark(index: int) -> str:
    marks = list(_MARKS)
    return marks[index % len(marks)] * (1 + index // len(marks))
