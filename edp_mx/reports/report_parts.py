"""Parts of a report, which become Markdown or a section of an HTML page."""

from __future__ import annotations

import re
from typing import List, NamedTuple, Optional, Sequence

from edp_mx.reports.pages import render_page
from edp_mx.reports.panels import Picture
from edp_mx.reports.table import parse_table, render_table

MISSING = "–"
_NUMBER = re.compile(
    r"[+-]?(\d[\d,]*(\.\d+)?(e[+-]?\d+)?|∞)(?=$| [(±])"
)  # alone, or before its range


class Cell(NamedTuple):
    """A number of ours, as text and to sort by, the paper's, and whether ours may be chance."""

    text: str = MISSING
    paper: str = ""
    value: Optional[float] = None
    is_chance: bool = False

    def __str__(self) -> str:
        return f"{self.text} [{self.paper}]" if self.paper else self.text


class PartTable(NamedTuple):
    """A table with a caption."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]

    @classmethod
    def of_texts(
        cls, caption: str, header: Sequence[str], rows: Sequence[Sequence[str]]
    ) -> PartTable:
        """Return a table that is sorted by the numbers that its texts begin with."""
        return cls(caption, header, [[_cell_of(text) for text in row] for row in rows])

    @classmethod
    def of_markdown(cls, caption: str, text: str) -> PartTable:
        """Return the text of `render_table`."""
        return cls.of_texts(caption, *parse_table(text))


def _cell_of(text: str) -> Cell:
    number = _NUMBER.match(text)
    said = number[0].replace(",", "").replace("∞", "inf") if number else None
    return Cell(text, "", None if said is None else float(said))


class Part(NamedTuple):
    """A section: sentences, pictures, tables, notes, a list, commands."""

    title: str
    texts: Sequence[str] = ()
    pictures: Sequence[Picture] = ()
    tables: Sequence[PartTable] = ()
    notes: Sequence[str] = ()
    points: Sequence[str] = ()
    commands: Sequence[str] = ()


def as_markdown(title: str, summary: str, parts: Sequence[Part]) -> str:
    """Return a page without pictures, and without the parts that have nothing else to show."""
    blocks: List[str] = [f"# {title}", summary]
    for part in (each for each in parts if each.tables or not each.pictures):
        blocks += [f"## {part.title}", *part.texts]
        for table in part.tables:
            rows = [[str(cell) for cell in row] for row in table.rows]
            blocks += [f"### {table.caption}", render_table(table.header, rows)]
        blocks += part.notes
        if part.points:
            blocks.append("\n".join(f"- {point}" for point in part.points))
        if part.commands:
            blocks.append("\n".join(["```bash", *part.commands, "```"]))
    return "\n\n".join(blocks) + "\n"


def as_html(title: str, summary: str, parts: Sequence[Part]) -> str:
    """Return a self-contained page, whose tables can be sorted by a click on a column's name."""
    return render_page("page.html", title=title, summary=summary, parts=parts, missing=MISSING)
