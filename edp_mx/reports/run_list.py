"""A table of finished runs and records that fits a terminal."""

from __future__ import annotations

from typing import List, Sequence

from edp_mx.reports.footnotes import footnotes
from edp_mx.reports.summary import (
    format_holding_epsilon,
    published_cell,
    published_heading,
    stated_note,
)
from edp_mx.reports.table import render_table
from edp_mx.runs.records import Found
from edp_mx.runtime.console_text import WIDTH, lines_of
from edp_mx.tasks.registry import by_task
from edp_mx.tasks.task import Task


def list_runs(found: Sequence[Found]) -> str:
    """Return a table for each task: test scores and both ε of each run, in 80 columns."""
    notes: List[str] = []
    tables = [
        _table(task, its, notes) for task, its in by_task(found, lambda each: each.record.settings)
    ]
    told = [*footnotes(notes), *stated_note([each.record for each in found])]
    return "\n".join([*tables, *(line for note in told for line in lines_of(note, rest="  "))])


def _table(task: Task, found: Sequence[Found], notes: List[str]) -> str:
    records = [each.record for each in found]
    header = (
        "run",
        *(each.narrow_heading for each in task.metrics),
        *published_heading(records),
        "ε that holds",
    )
    rows = [
        [
            place.stem if place.suffix == ".json" else place.name,
            *(each.of(record.test) for each in task.metrics),
            *published_cell(record, records),
            format_holding_epsilon(record, notes),
        ]
        for place, record in found
    ]
    others = sum(max(3, *(len(row[i]) for row in [header, *rows])) for i in range(1, len(header)))
    room = WIDTH - others - 3 * len(header) - 1
    return render_table(header, [[shortened(row[0], room), *row[1:]] for row in rows])


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
