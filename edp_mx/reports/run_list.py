"""A table of finished runs and records that fits a terminal."""

from __future__ import annotations

import textwrap
from typing import List, Sequence

from edp_mx.reports.summary import (
    footnotes,
    format_epsilon,
    format_holding_epsilon,
    stated_note,
)
from edp_mx.reports.table import WIDTH, render_table
from edp_mx.runs.records import Found

HEADER = ("run", "SER %", "intent", "F1", "ε publ.", "ε that holds")


def list_runs(found: Sequence[Found]) -> str:
    """Return the table: test scores and both ε of each, in 80 columns."""
    notes: List[str] = []
    rows = []
    for place, record in found:
        test = record["test"]
        rows.append(
            [
                place.stem if place.suffix == ".json" else place.name,
                f"{100 * test['ser']:.2f}",
                f"{100 * test['intent_accuracy']:.1f}",
                f"{100 * test['slot_f1']:.1f}",
                format_epsilon(record["as_published"]),
                format_holding_epsilon(record, notes),
            ]
        )
    table = [HEADER, *rows]
    others = sum(max(3, *(len(row[i]) for row in table)) for i in range(1, len(HEADER)))
    room = WIDTH - others - 3 * len(HEADER) - 1
    rows = [[shortened(row[0], room), *row[1:]] for row in rows]
    told = [*footnotes(notes), *stated_note([each.record for each in found])]
    lines = [textwrap.fill(note, WIDTH, subsequent_indent="  ") for note in told]
    return "\n".join([render_table(HEADER, rows), *lines])


def shortened(text: str, width: int) -> str:
    """Leave out the middle of a text that is too long.

    Example:
        >>> shortened("atis_clc_edp_exponential-20260101-120000", 20)
        'atis_clc_e…01-120000'
    """
    if len(text) <= width:
        return text
    end = (width - 1) // 2
    return f"{text[: width - 1 - end]}…{text[len(text) - end :]}"
