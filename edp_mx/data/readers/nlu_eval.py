"""NLU-Eval as published: semicolon-separated files with the annotation inline.

Two layouts: `KFold_<i>/testset/csv/<scenario>_<intent>.csv` (ten disjoint folds), and the full
release in one file, whose rows with a status `IRR…` were judged irrelevant and are skipped.
"""

from __future__ import annotations

import csv
import re
from bisect import bisect_right
from pathlib import Path
from typing import Dict, Iterator, List, Tuple

from edp_mx.data.readers.assembly import Assembler, Chunk, read_lines, refuse_repeated, tag_chunks
from edp_mx.data.readers.format import Format, Sources, relative_sources, single_file
from edp_mx.data.utterance import Utterance
from edp_mx.errors import UserError
from edp_mx.runtime.console_text import count_of

FULL_RELEASE = "NLU-Data-Home-Domain-Annotated-All.csv"
_COLUMNS = ("scenario", "intent", "answer_annotation")
# Where quotes inside a field were not doubled: it ends at a quote before a semicolon or the end.
_CLOSING_QUOTE = re.compile(r'"(?=;|$)')
_BRACKETS = re.compile(r"\[([^\[\]]*)\]")


def _find(path: Path) -> Sources:
    """Take a file; or the folds' test sets, else the full release, else all `.csv` of a folder."""
    if path.is_file():
        return single_file(path, ".csv")
    folds = sorted(path.glob("KFold_*/testset/csv/*.csv"), key=_fold_order)
    full = [p for p in (path / FULL_RELEASE, path / "AnnotatedData" / FULL_RELEASE) if p.is_file()]
    return relative_sources(path, {"": folds or full[:1] or sorted(path.glob("[!.]*.csv"))})


def _read(path: Path, assembler: Assembler, id_prefix: str) -> Iterator[Utterance]:
    """Stream one file of either layout; the file's own answer ids repeat and are not used."""
    header: List[str] = []
    for number, line in read_lines(path, assembler.errors):
        place = f"{path}, line {number}"
        if not header:
            header = [name.strip() for name in split_fields(line, 0)]
            refuse_repeated(header, place)
            for column in _COLUMNS:
                if column not in header:
                    raise UserError(f'{place}: the column "{column}" is missing from the header')
            continue
        if not line.strip():
            continue
        with assembler.errors:
            fields = split_fields(line, len(header))
            if len(fields) != len(header):
                raise UserError(
                    f"{place}: {count_of(len(fields), 'column')} but the header has {len(header)}"
                )
            row: Dict[str, str] = dict(zip(header, fields))
            if row.get("status", "").strip().startswith("IRR"):
                continue
            tokens, tags = parse_annotation(row["answer_annotation"], place)
            scenario, intent = row["scenario"].strip(), row["intent"].strip()
            if not scenario or not intent:
                raise UserError(f"{place}: the scenario or the intent is empty")
            yield assembler.assemble(
                tokens, tags, f"{scenario}_{intent}", id=f"{id_prefix}/{number}", place=place
            )


def split_fields(line: str, columns: int) -> List[str]:
    """Return the fields of a row, read strictly if that gives `columns` of them, else loosely."""
    try:
        fields = next(csv.reader([line], delimiter=";", strict=True), [])
        if len(fields) == columns:
            return fields
    except csv.Error:
        pass
    loose: List[str] = []
    closing = [match.start() for match in _CLOSING_QUOTE.finditer(line)]
    start = 0
    while start <= len(line):
        at = bisect_right(closing, start)  # the first one behind an opening quote
        if line.startswith('"', start) and at < len(closing):
            end = closing[at] + 1
            loose.append(line[start + 1 : end - 1].replace('""', '"'))
        else:
            found = line.find(";", start)
            end = len(line) if found < 0 else found
            loose.append(line[start:end])
        start = end + 1
    return loose


def parse_annotation(text: str, place: str) -> Tuple[List[str], List[str]]:
    """Return the tokens and BIO tags of an annotation."""
    chunks: List[Chunk] = []
    end = 0
    for match in [*_BRACKETS.finditer(text), None]:
        plain = text[end : match.start() if match else len(text)]
        if "[" in plain or "]" in plain or (match and ":" not in match.group(1)):
            raise UserError(f"{place}: unbalanced or nameless bracket")
        chunks.append((plain, None))
        if match:
            named, _, value = match.group(1).partition(":")
            name = "_".join(named.split())
            if not name or not value.strip():
                raise UserError(f"{place}: a bracket without a slot name or a value")
            chunks.append((value, name))
            end = match.end()
    return tag_chunks(chunks)


def _fold_order(path: Path) -> Tuple[int, str]:
    """Sort KFold_2 before KFold_10."""
    number = path.parent.parent.parent.name.rpartition("_")[2]
    return int(number[:9]) if number.isdecimal() else 0, path.name


FORMAT = Format("nlu_eval", "KFold_*/testset/csv/*.csv", _find, _read, depth=4)
