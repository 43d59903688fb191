"""`results/table1.md`: Table 1 as asked for, its gaps, and the sources of its numbers."""

from __future__ import annotations

import shlex
from typing import Iterable, List, Mapping, Sequence

from edp_mx.reports.records_page import environment, summary_of
from edp_mx.reports.report_parts import Part, as_markdown
from edp_mx.runs.attack_files import AttackRecord
from edp_mx.runs.file_types import Record
from experiments.pages.grid_choice import choice_of_settings
from experiments.pages.table1 import of_other_starts, table1
from experiments.pages.table1_about import about
from experiments.tables.cells import Cell, Request
from experiments.tables.fill import problems
from experiments.tables.methods import method_of
from experiments.tables.query import Entry, Key, but_for_privacy, query


def table1_page(
    request: Request,
    cells: Sequence[Cell],
    attacks: Sequence[AttackRecord],
    said: Sequence[str] = (),
    grids: Sequence[Record] = (),
) -> str:
    """Return the page of a table, of the records that its cells have.

    Args:
        said: lines about attacks that were not made.
        grids: records of the trials of the paper's grids.
    """
    known = [record for cell in cells for record in cell.trial.records]
    keys = list(dict.fromkeys((cell.family, cell.corpus, cell.method) for cell in cells))
    command = f"Made by `{command_of(request)}`."
    entries = query(known, attacks)
    asked = {key: entry for key, entry in entries.items() if key in keys}
    others = query(from_other_starts(known, asked))
    parts = [*about(asked), table1(entries, keys), *of_other_starts(others, keys)]
    parts += choice_of_settings(grids, asked)
    records = [record for entry in asked.values() for record in entry.records]
    lacking = [*problems(cells), *said]
    if lacking:
        parts.append(Part("Missing", points=lacking))
    return as_markdown(
        "The paper's Table 1", f"{command} {summary_of(records)}", [*parts, environment(records)]
    )


def from_other_starts(records: Iterable[Record], found: Mapping[Key, Entry]) -> List[Record]:
    """Return the runs that differ from a row's in nothing but privacy, seed and pre-training."""
    start, others = "model.checkpoint", []
    for record in records:
        entry = found.get((record.family, record.corpus, method_of(record) or ""))
        if entry is None:
            continue
        of_row = entry.records[0]
        is_other = record.settings.get(start) != of_row.settings.get(start)
        if is_other and but_for_privacy(record, start) == but_for_privacy(of_row, start):
            others.append(record)
    return others


def command_of(request: Request) -> str:
    """Return the command that asks for a table, without its folders."""
    usual = Request(request.configs)
    words: List[str] = ["python", "-m", "experiments.table1"]
    for option, given, default in (
        ("--corpora", request.corpora, usual.corpora),
        ("--models", request.families, usual.families),
        ("--methods", request.methods, usual.methods),
        ("--seeds", request.seeds, usual.seeds),
        ("--set", request.overrides, usual.overrides),
        ("--lira", [request.lira], [usual.lira]),
    ):
        if list(given) != list(default):
            words += [option, *map(str, given)]
    flags = [("--small", request.is_small), ("--attacks", request.is_attacked)]
    return shlex.join([*words, *(flag for flag, is_set in flags if is_set)])
