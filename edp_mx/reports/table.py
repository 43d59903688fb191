"""Plain-text tables: Markdown that is also readable in a terminal."""

from __future__ import annotations

from typing import Sequence


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
