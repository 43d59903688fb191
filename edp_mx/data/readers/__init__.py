"""From files to utterances: one module per format, and the choice among them."""

from __future__ import annotations

from pathlib import Path
from typing import Iterable, Iterator, List, Optional, Tuple

from edp_mx.data.ids import with_unique_ids
from edp_mx.data.readers import (
    clinc_json,
    conll,
    dart_json,
    dstc8,
    e2e,
    json_lines,
    nlu_eval,
    parquet,
    persona_chat,
    rasa_yaml,
    snips_json,
    system_turns,
    table,
    text_lines,
    three_files,
)
from edp_mx.data.readers.assembly import Assembler
from edp_mx.data.readers.columns_config import ColumnsConfig
from edp_mx.data.readers.format import Format, Sources, refuse_unreadable
from edp_mx.data.utterance import Utterance
from edp_mx.errors import UserError
from edp_mx.runtime.files import PathLike

FORMATS = {
    format.name: format
    for format in (
        three_files.FORMAT,
        system_turns.FORMAT,  # before json_lines
        json_lines.FORMAT,
        dstc8.FORMAT,
        clinc_json.FORMAT,
        dart_json.FORMAT,  # before snips_json
        snips_json.FORMAT,
        e2e.FORMAT,  # before table
        table.FORMAT,
        parquet.FORMAT,
        conll.FORMAT,
        rasa_yaml.FORMAT,
        nlu_eval.FORMAT,
        persona_chat.FORMAT,  # before text
        text_lines.FORMAT,
    )
}


_GENERIC = (json_lines.FORMAT, table.FORMAT, parquet.FORMAT, conll.FORMAT)  # files of one's own


def read_utterances(
    path: PathLike, layout: str = "auto", columns: Optional[ColumnsConfig] = None
) -> List[Utterance]:
    """Read a whole corpus, its own parts one after the other.

    Args:
        layout: "auto" (recognised by the names of files), or one of `FORMATS`.
        columns: which keys or columns hold what; by default the usual ones.

    Raises:
        UserError: nothing there, an unknown layout, or a broken file (with file and line).

    Edge cases: ids are unique: `<file>/<line>`, relative to `path`; ids that a JSON line brings
        along are kept, and refused where they repeat.
    """
    found = [utterance for _, utterance in stream_utterances(path, layout, columns)]
    return list(with_unique_ids(found, (utterance.id for utterance in found), path))


def stream_utterances(
    path: PathLike,
    layout: str = "auto",
    columns: Optional[ColumnsConfig] = None,
    *,
    assembler: Optional[Assembler] = None,
) -> Iterator[Tuple[str, Utterance]]:
    """Yield each utterance with the part that it was published in, or ""; ids may repeat.

    Args:
        assembler: in place of one for these columns, if another stream is to be read alike, or
            errors are not to be raised.
    """
    assembler = assembler or Assembler(columns)
    format, found = _find(Path(path), layout)
    for part, sources in found.items():
        is_empty = True
        for source, prefix in sources:
            with assembler.file_errors:
                for utterance in format.read(source, assembler, prefix):
                    is_empty = False
                    yield part, utterance
        with assembler.errors:
            if part and is_empty:
                raise UserError(
                    f"{sources[0][0]}, the {part} part, holds no utterance that can be read; fill "
                    "it, or remove it"
                )


def files_of(path: PathLike, layout: str = "auto") -> List[Tuple[str, Path]]:
    """Return the files that `stream_utterances` reads, in order, each with its part and name."""
    format, found = _find(Path(path), layout)
    return [
        (f"{format.name} {part} {prefix} {file.name}", file)
        for part, sources in found.items()
        for source, prefix in sources
        for file in format.files_of(source)
    ]


def has_own_split(parts: Iterable[str]) -> bool:
    """Return whether a corpus was published with a training part and one to test on."""
    found = set(parts)
    return "train" in found and not found.isdisjoint(("validation", "test"))


def require_own_split(path: PathLike, parts: Iterable[str]) -> None:
    """Refuse a corpus without a training part, or without one to test on."""
    if not has_own_split(parts):
        raise UserError(
            f"{path} has no split of its own (it needs train, and test or valid): "
            "set data.split to paper"
        )


def _refuse_second(path: Path, format: Format, sources: Sources) -> None:
    """Refuse a folder with files in two of the layouts that one's own have: all files are read."""
    for other in _GENERIC:
        found = other.find(path) if other is not format else {}
        for (first, _), *_ in list(found.values())[:1]:
            raise UserError(
                f"{path} has files in two layouts, {next(iter(sources.values()))[0][0].name} "
                f"({format.name}) and {first.name} ({other.name}): take one kind away, or name the "
                "one that is to be read by data.layout"
            )


def _find(path: Path, layout: str) -> Tuple[Format, Sources]:
    """Return the format of a corpus, and the files for its reader."""
    if not path.exists():
        raise UserError(f"{path} does not exist")
    for format in FORMATS.values() if layout == "auto" else [FORMATS[layout]]:
        sources = format.find(path)
        if sources:
            if path.is_dir():
                refuse_unreadable(path, format.depth)
                if layout == "auto" and format in _GENERIC:
                    _refuse_second(path, format, sources)
            return format, sources
    if layout != "auto":
        raise UserError(f"{path} holds no file in the layout {layout}")
    raise UserError(
        f"{path} is in no known layout ({', '.join(FORMATS)}): expected "
        + ", or ".join(format.example for format in FORMATS.values())
    )
