"""Text for a console of 80 columns."""

from __future__ import annotations

import logging
import textwrap

WIDTH = 80  # columns of a console


def wrap(text: str, width: int = WIDTH) -> str:
    """Wrap longer lines, whose further lines are indented by two more blanks.

    Lines with a command stay whole, so that they can be copied.
    """
    return "\n".join(_wrapped(line, width) for line in text.split("\n"))


class WrappedFormatter(logging.Formatter):
    """Messages alone, in lines of `WIDTH`."""

    def format(self, record: logging.LogRecord) -> str:
        """See `logging.Formatter`."""
        return wrap(super().format(record))


def _wrapped(line: str, width: int) -> str:
    if len(line) <= width or " --" in line or "edp-mx" in line:
        return line
    indent = " " * (len(line) - len(line.lstrip()))
    return textwrap.fill(
        line.strip(),
        width,
        initial_indent=indent,
        subsequent_indent=f"{indent}  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
