"""Parquet: tables as Hugging Face's datasets are published, one utterance per row."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Dict, Iterator, List

from edp_mx.data.readers.assembly import ALWAYS_READ, MOST_INFLATION, Assembler, refuse_repeated
from edp_mx.data.readers.format import (
    Format,
    Sources,
    relative_sources,
    single_file,
    sources_by_part,
)
from edp_mx.data.readers.record_errors import UnreadableRest
from edp_mx.data.readers.records import RecordReader
from edp_mx.data.utterance import Utterance
from edp_mx.errors import UserError

_SUFFIX = ".parquet"
_SHARD = re.compile(r"(.+)-(\d{5})-of-(\d{5})\.parquet")
_AT_ONCE = 1024  # rows


def _find(path: Path) -> Sources:
    """Take a file; or `train`, `valid` and `test` of a folder, else all its files.

    A part may lie in several files, such as `train-00000-of-00002.parquet`.
    """
    if path.is_file():
        return single_file(path, _SUFFIX)
    found: Dict[str, List[Path]] = {}
    for file in sorted(path.glob(f"[!.]*{_SUFFIX}")):
        shard = _SHARD.fullmatch(file.name)
        found.setdefault(shard[1] if shard else file.name[: -len(_SUFFIX)], []).append(file)
    for files in found.values():
        _refuse_missing(files)
    parts = sources_by_part({name: files[0] for name, files in found.items()})
    if not parts:
        return relative_sources(path, {"": [file for files in found.values() for file in files]})
    return {
        part: [(file, file.name[: -len(_SUFFIX)]) for file in found[name]]
        for part, [(_, name)] in parts.items()
    }


def _refuse_missing(files: List[Path]) -> None:
    """Refuse files of which some of their number are not there."""
    shards = [match for match in (_SHARD.fullmatch(file.name) for file in files) if match]
    if not shards:
        return
    present, total = {int(shard[2]) for shard in shards}, int(shards[0][3])
    if len(shards) != len(files) or present != set(range(total)):
        raise UserError(
            f"{files[0].parent} holds {len(files)} files {shards[0][1]}-*{_SUFFIX}, which are not "
            f"the {total} that their names tell of; bring all of them, and nothing else"
        )


def _read(path: Path, assembler: Assembler, id_prefix: str) -> Iterator[Utterance]:
    """Stream the rows of a table; its columns are read as those of a CSV, or the keys of JSON."""
    reader = RecordReader(assembler, "column")
    names: Dict[str, str] = {}
    for number, record in enumerate(_records(path), start=1):
        place = f"{path}, row {number}"
        names = names or reader.names_among(record, place)
        with assembler.errors:
            yield reader.read(record, names, id=f"{id_prefix}/{number}", place=place)


def _records(path: Path) -> Iterator[Dict[str, Any]]:
    """Stream rows by the names of their columns.

    Raises:
        UnreadableRest: it is no whole file, or it would become a hundred times as large as it is.
    """
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    try:
        with ParquetFile(path, memory_map=False) as file:
            refuse_repeated(file.schema_arrow.names, str(path))
            groups = range(file.metadata.num_row_groups)
            total = sum(file.metadata.row_group(each).total_byte_size for each in groups)
            if total > max(MOST_INFLATION * path.stat().st_size, ALWAYS_READ):
                raise UnreadableRest(f"{path}: it holds {total:,} bytes, which is no text")
            for batch in file.iter_batches(_AT_ONCE, use_threads=False):
                yield from batch.to_pylist()
    except (ArrowException, OSError, ValueError, OverflowError) as error:
        reason = " ".join(str(error).split())
        raise UnreadableRest(f"cannot read {path}: {reason}") from error


FORMAT = Format("parquet", "*.parquet", _find, _read)
