"""Parts of a report, which become Markdown or a section of an HTML page."""

from __future__ import annotations

import re
from typing import Iterable, List, NamedTuple, Optional, Sequence

from edp_mx.reports.footnotes import split_mark
from edp_mx.reports.headlines import Headline
from edp_mx.reports.pages import render_page
from edp_mx.reports.panels import Picture
from edp_mx.reports.table import render_table

MISSING = "–"
MOST_OPEN = 3  # pictures of a part; of more, each but the first is folded
_NUMBER = re.compile(
    r"[+-]?(\d[\d,]*(\.\d+)?(e[+-]?\d+)?|∞)(?=$| [(±])"
)  # alone, or before its range
_RANGE = re.compile(r" (?=[(±])")


class Cell(NamedTuple):
    """A number of ours, as text and to sort by, the paper's, and whether ours may be chance."""

    text: str = MISSING
    paper: str = ""
    value: Optional[float] = None
    is_chance: bool = False

    def __str__(self) -> str:
        return f"{self.text} [{self.paper}]" if self.paper else self.text

    @property
    def parts(self) -> List[str]:
        """A number, and its range or by how much it may differ by chance; other text alone."""
        return [self.text] if self.value is None else _RANGE.split(self.text, 1)


def counted(number: Optional[int]) -> Cell:
    """Return the cell of a whole number, or of none."""
    return Cell() if number is None else Cell(f"{number:,}", "", number)


class PartTable(NamedTuple):
    """A table with a caption, whose first columns (`heads`) together name a row."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    heads: int = 1

    @classmethod
    def of_texts(
        cls, caption: str, header: Sequence[str], rows: Sequence[Sequence[str]], heads: int = 1
    ) -> PartTable:
        """Return a table that is sorted by the numbers that its texts begin with."""
        return cls(caption, header, [[_cell_of(text) for text in row] for row in rows], heads)

    @classmethod
    def of_facts(cls, caption: str, rows: Iterable[Sequence[object]]) -> PartTable:
        """Return a table of names and values, which are texts even where they begin with digits."""
        return cls(caption, ("what", "value"), [[Cell(str(each)) for each in row] for row in rows])


def _cell_of(text: str) -> Cell:
    number = _NUMBER.match(split_mark(text)[0])
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


def as_markdown(
    title: str, summary: str, parts: Sequence[Part], head: Sequence[Headline] = ()
) -> str:
    """Return a page without pictures, and without the parts that have nothing else to show."""
    blocks: List[str] = [f"# {title}", summary]
    blocks += ["\n".join(f"- {each}" for each in head)] if head else []
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


def as_html(title: str, summary: str, parts: Sequence[Part], head: Sequence[Headline] = ()) -> str:
    """Return a self-contained page; a click on a column's name sorts its table."""
    shown = {"title": title, "summary": summary, "parts": parts, "head": head}
    return render_page("page.html", **shown, missing=MISSING, most_open=MOST_OPEN)
