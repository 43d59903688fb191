"""Tables: CSV or TSV with a header that names the columns, one utterance per row."""

from __future__ import annotations

import csv
from itertools import chain
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Tuple

from edp_mx.data.readers.assembly import (
    Assembler,
    decoded,
    most_of_a_line,
    read_bytes_by_line,
    refuse_repeated,
)
from edp_mx.data.readers.format import Format, Sources, file_or_folder, first_line
from edp_mx.data.readers.record_errors import RecordErrors, UnreadableRest
from edp_mx.data.readers.records import RecordReader
from edp_mx.data.utterance import Utterance
from edp_mx.errors import UserError
from edp_mx.runtime.console_text import count_of

_SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
_NLU_EVAL = b"answer_annotation"  # a column of NLU-Eval, which has a reader of its own


def _find(path: Path) -> Sources:
    """Take a file; or `train.csv`, `valid.csv` and `test.csv`, else all tables of a folder."""
    sources = file_or_folder(path, _SUFFIXES)
    return {} if _NLU_EVAL in first_line(sources) else sources


def _read(path: Path, assembler: Assembler, id_prefix: str) -> Iterator[Utterance]:
    """Stream a table; empty rows are skipped, and empty cells hold nothing."""
    reader = RecordReader(assembler, "column")
    names: Dict[str, str] = {}
    for number, row in table_rows(path, assembler.errors):
        place = f"{path}, line {number}"
        if not names:  # of the header
            names = reader.names_among(row, place)
            continue
        with assembler.errors:
            record = {column: cell or None for column, cell in row.items()}
            yield reader.read(record, names, id=f"{id_prefix}/{number}", place=place)


def table_rows(
    path: Path, errors: Optional[RecordErrors] = None
) -> Iterator[Tuple[int, Dict[str, str]]]:
    """Yield (number of the first line, cells by column) of each row, the header among them.

    Cells have no blanks around them, and rows without any text are skipped.

    Args:
        errors: what is done with a row that is none; one of several lines, behind whose broken
            quotation mark the next row may begin anywhere, ends the file, and so does a header.
    """
    errors = errors or RecordErrors()
    damage: List[UserError] = []
    lines = _lines(path, damage)
    first = next(lines, "")
    comma = ";" if ";" in first and "," not in first else ","
    delimiter = "\t" if ".tsv" in path.suffixes else comma
    csv.field_size_limit(most_of_a_line())  # of the whole process
    rows = csv.reader(chain([first], lines), delimiter=delimiter, strict=True)
    header: List[str] = []
    while True:
        number = rows.line_num + 1
        place = f"{path}, line {number}"
        with errors:
            try:
                row = _next_row(rows, delimiter, place)
                if damage:
                    raise damage[0]
                cells = [cell.strip() for cell in row or ()]
                if not header:
                    refuse_repeated(cells, place)
            except UserError as error:
                if header and rows.line_num <= number:
                    raise
                raise UnreadableRest(str(error)) from error
            finally:
                damage.clear()
            if row is None:
                return
            if not any(cells):
                continue
            header = header or cells
            if len(cells) != len(header):
                raise UserError(
                    f"{place}: {count_of(len(cells), 'column')} but the header has {len(header)}"
                )
            yield number, dict(zip(header, cells))


def _lines(path: Path, damage: List[UserError]) -> Iterator[str]:
    """Stream lines with their ends; one that is not UTF-8 adds to the damage of its row."""
    for number, line in read_bytes_by_line(path):
        try:
            yield f"{decoded(line, number, path)}\n"
        except UserError as error:
            damage.append(error)
            yield f"{line.decode('utf-8', 'replace')}\n"  # whose quotation marks count


def _next_row(rows: Any, delimiter: str, place: str) -> Optional[List[str]]:
    """Return the next row of `csv.reader`, None at the end; refuse what is none."""
    try:
        row: Optional[List[str]] = next(rows, None)
    except csv.Error as error:
        raise UserError(
            f"{place}: not a row of a table ({error}); write a quotation mark within quoted text "
            "twice"
        ) from error
    if delimiter == "\t" and row and any("\t" in cell or "\n" in cell for cell in row):
        raise UserError(
            f"{place}: a cell that begins with a quotation mark goes on over tabs or lines; write "
            'each quotation mark in it twice and the cell between "…"'
        )
    return row


FORMAT = Format("table", "*.csv or *.tsv", _find, _read)
