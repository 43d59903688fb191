"""Text for a console of 80 columns."""

from __future__ import annotations

import logging
import textwrap
from typing import List

WIDTH = 80  # columns of a console


def lines_of(text: str, *, first: str = "", rest: str = "", width: int = WIDTH) -> List[str]:
    """Return a text as lines, which begin with `first` and `rest`; no word is broken."""
    return textwrap.wrap(
        text,
        width,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


def wrap(text: str, width: int = WIDTH) -> str:
    """Wrap longer lines, whose further lines are indented by two more blanks.

    Lines with a command stay whole, so that they can be copied.
    """
    return "\n".join(_wrapped(line, width) for line in text.split("\n"))


def count_of(number: int, what: str) -> str:
    """Return a number and what it counts, which gets an s unless it is one.

    Example:
        >>> count_of(1, "worker"), count_of(1000, "utterance")
        ('1 worker', '1,000 utterances')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"


class WrappedFormatter(logging.Formatter):
    """Messages alone, in lines of `WIDTH`."""

    def format(self, record: logging.LogRecord) -> str:
        """See `logging.Formatter`."""
        return wrap(super().format(record))


def _wrapped(line: str, width: int) -> str:
    if len(line) <= width or " --" in line or "edp-mx" in line or line.endswith("\\"):
        return line
    indent = " " * (len(line) - len(line.lstrip()))
    return "\n".join(lines_of(line.strip(), first=indent, rest=f"{indent}  ", width=width))
