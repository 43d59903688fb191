"""Plain-text tables: Markdown that is also readable in a terminal."""

from __future__ import annotations

from typing import List, Sequence, Tuple


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
