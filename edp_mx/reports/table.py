"""A table as plain text: Markdown that is also readable in a terminal."""

from __future__ import annotations

from typing import Sequence


def render_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Aligns the columns; the first to the left, the others to the right.

    Example:
        >>> print(render_table(["run", "SER"], [["a", "6.3"], ["bb", "12.7"]]))
        | run |  SER |
        | --- | ---: |
        | a   |  6.3 |
        | bb  | 12.7 |
    """
    widths = [max(3, *(len(row[i]) for row in [header, *rows])) for i in range(len(header))]
    lines = [
        "| "
        + " | ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths))
        )
        + " |"
        for row in [header, *rows]
    ]
    rule = " | ".join(
        "-" * width if i == 0 else "-" * (width - 1) + ":" for i, width in enumerate(widths)
    )
    return "\n".join([lines[0], f"| {rule} |", *lines[1:]])
