"""Tables: CSV or TSV with a header that names the columns, one utterance per row."""

from __future__ import annotations

import csv
from itertools import chain
from pathlib import Path
from typing import Dict, Iterator, List, Tuple

from edp_mx.data.readers.assembly import Assembler, read_bytes_by_line, read_lines, refuse_repeated
from edp_mx.data.readers.format import Format, Sources, file_or_folder
from edp_mx.data.readers.records import RecordReader
from edp_mx.data.utterance import Utterance
from edp_mx.errors import UserError

_SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
_NLU_EVAL = b"answer_annotation"  # a column of NLU-Eval, which has a reader of its own


def _find(path: Path) -> Sources:
    """Take a file; or `train.csv`, `valid.csv` and `test.csv`, else all tables of a folder."""
    sources = file_or_folder(path, _SUFFIXES)
    first = next((file for found in sources.values() for file, _ in found), None)
    if first is None or _NLU_EVAL in next(read_bytes_by_line(first), (1, b""))[1]:
        return {}
    return sources


def _read(path: Path, assembler: Assembler, id_prefix: str) -> Iterator[Utterance]:
    """Stream a table; empty rows are skipped, and empty cells hold nothing."""
    reader = RecordReader(assembler, "column")
    header: List[str] = []
    names: Dict[str, str] = {}
    for number, cells in table_rows(path):
        place = f"{path}, line {number}"
        if not header:
            refuse_repeated(cells, place)
            header, names = cells, reader.names_among(cells, place)
            continue
        if len(cells) != len(header):
            raise UserError(f"{place}: {len(cells)} columns but the header has {len(header)}")
        record = {column: cell or None for column, cell in zip(header, cells)}
        yield reader.read(record, names, id=f"{id_prefix}/{number}", place=place)


def table_rows(path: Path) -> Iterator[Tuple[int, List[str]]]:
    """Yield (number of the first line, cells without blanks around them) of each row."""
    lines = (f"{line}\n" for _, line in read_lines(path))
    first = next(lines, "")
    comma = ";" if ";" in first and "," not in first else ","
    delimiter = "\t" if ".tsv" in path.suffixes else comma
    rows = csv.reader(chain([first], lines), delimiter=delimiter, strict=True)
    number = 1
    try:
        for row in rows:
            if delimiter == "\t" and any("\t" in cell or "\n" in cell for cell in row):
                raise UserError(
                    f"{path}, line {number}: a cell that begins with a quotation mark goes on over "
                    'tabs or lines; write each quotation mark in it twice and the cell between "…"'
                )
            cells = [cell.strip() for cell in row]
            if any(cells):
                yield number, cells
            number = rows.line_num + 1
    except csv.Error as error:
        raise UserError(
            f"{path}, line {number}: not a row of a table ({error}); write a quotation mark within "
            "quoted text twice"
        ) from error


FORMAT = Format("table", "*.csv or *.tsv", _find, _read)
