"""Plain-text tables: Markdown that is also readable in a terminal."""

from __future__ import annotations

import shlex
import statistics
from itertools import groupby
from typing import List, Sequence, Tuple

from edp_mx.runtime.console_text import WIDTH, lines_of, wrap


def render_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Render a table, with the first column aligned left and the others right.

    Example:
        >>> print(render_table(["run", "SER"], [["a", "6.3"], ["bb", "12.7"]]))
        | run |  SER |
        | --- | ---: |
        | a   |  6.3 |
        | bb  | 12.7 |
    """
    table = [header, *rows]
    widths = [max(3, *(len(row[i]) for row in table)) for i in range(len(header))]
    lines = [
        [row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:]))]
        for row in table
    ]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    return "\n".join(f"| {' | '.join(line)} |" for line in [lines[0], rule, *lines[1:]])


def parse_table(text: str) -> Tuple[List[str], List[List[str]]]:
    """Return the header and the rows of a table that `render_table` made.

    Example:
        >>> parse_table(render_table(["run", "SER"], [["a", "6.3"]]))
        (['run', 'SER'], [['a', '6.3']])
    """
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()]
    return lines[0], lines[2:]


def show_quartiles(values: Sequence[float], digits: int) -> str:
    """Render the median and, in brackets, the quartiles, which fewer than three values do not have.

    Example:
        >>> show_quartiles([1000.0, 3000.0, 2000.0], 0), show_quartiles([1000.0], 0)
        ('2,000 (1,500–2,500)', '1,000')
    """
    if len(values) < 3:
        return f"{statistics.median(values):,.{digits}f}"
    quartiles = statistics.quantiles(values, n=4, method="inclusive")
    low, median, high = (f"{value:,.{digits}f}" for value in quartiles)
    return f"{median} ({low}–{high})"


def fit(text: str, width: int = WIDTH) -> str:
    """Return a text for a console: wider tables become a block per row, longer lines are wrapped.

    Lines with a command stay whole, so that they can be copied.

    Example:
        >>> print(fit(render_table(["run", "SER"], [["a", "6.3"], ["bb", ""]]), width=12))
        a
          SER  6.3
        <BLANKLINE>
        bb
    """
    lines: List[str] = []
    for is_table, group in groupby(text.split("\n"), key=lambda line: line.startswith("| ")):
        found = list(group)
        if is_table and max(map(len, found)) > width:
            lines += _blocks("\n".join(found))
        else:
            lines += found if is_table else [wrap(line, width) for line in found]
    return "\n".join(lines)


def command_lines(command: str, *, indent: int, width: int = WIDTH) -> List[str]:
    r"""Return a command as lines that a shell joins again.

    Example:
        >>> print("\n".join(command_lines("edp-mx train --set a=1 b=2", indent=2, width=22)))
          edp-mx train --set \
            a=1 b=2
    """
    first = " " * indent
    words = [shlex.quote(word).replace(" ", "\0") for word in shlex.split(command)]
    lines = lines_of(" ".join(words), first=first, rest=f"{first}  ", width=width - 2)
    return " \\\n".join(lines).replace("\0", " ").split("\n")


def _blocks(text: str) -> List[str]:
    """Return each row of a table as lines: its first cell, and below it the others by heading."""
    header, rows = parse_table(text)
    names = max(map(len, header[1:]), default=0)
    lines: List[str] = []
    for row in rows:
        cells = [f"  {name:<{names}}  {cell}" for name, cell in zip(header[1:], row[1:]) if cell]
        lines += [*([""] if lines else []), row[0], *cells]
    return lines
