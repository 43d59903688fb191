"""A file format of corpora, and functions of all formats to find their files."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Dict, Iterator, List, Optional, Tuple

from edp_mx.data.readers.assembly import Assembler, read_bytes_by_line
from edp_mx.data.utterance import Utterance
from edp_mx.errors import UserError

# By part ("train", "validation", "test"; "" where a corpus has none) what a reader opens, each with
# the beginning of the ids that come from it.
Sources = Dict[str, List[Tuple[Path, str]]]
# Our name for a part → the names that its folder or file may have.
_PART_NAMES = {
    "train": ("train",),
    "validation": ("valid", "validation", "dev", "val"),
    "test": ("test",),
}


@dataclass(frozen=True)
class Format:
    """One file format; a new one is a module with such an object and a line in `FORMATS`.

    Attributes:
        example: the names by which it is recognised, for error messages.
        find: path → what `read` opens; empty where the path is not in this format.
        read: streams the utterances of one source, given the assembler that checks them and the
            beginning of their ids.
        files_of: the files that belong to one source.
        depth: of a corpus' folder, in which its files lie.
    """

    name: str
    example: str
    find: Callable[[Path], Sources]
    read: Callable[[Path, Assembler, str], Iterator[Utterance]]
    files_of: Callable[[Path], List[Path]] = lambda source: [source]
    depth: int = 1


def refuse_unreadable(folder: Path, depth: int) -> None:
    """Refuse a folder with a link to nothing, or with one that may not be read, at some depth.

    Finding files passes over both, and a corpus without some of its files looks like a whole one.
    Hidden names are none of a corpus.
    """
    try:
        entries = [each for each in os.scandir(folder) if not each.name.startswith(".")]
    except OSError as error:
        raise UserError(f"cannot read {folder}: {error.strerror}") from error
    for each in entries:
        if not os.path.exists(each.path):
            raise UserError(
                f"{each.path} is a link to nothing, so that a part of the corpus would be left "
                "out; bring back what it leads to, or remove it"
            )
        if depth > 1 and each.is_dir():
            refuse_unreadable(Path(each.path), depth - 1)


def sources_by_part(found: Dict[str, Path]) -> Sources:
    """Return the source of each part among the files or folders found, by name; {} if none is one.

    Raises:
        UserError: two of them are the same part, or one is no part and would not be read.
    """
    sources: Sources = {}
    for part, names in _PART_NAMES.items():
        present = [name for name in names if name in found]
        if len(present) > 1:
            raise UserError(
                f"{found[present[0]]} and {found[present[1]]} would both be the {part} part; leave "
                "one of them"
            )
        if present:
            sources[part] = [(found[present[0]], present[0])]
    others = sorted(found.keys() - {name for names in _PART_NAMES.values() for name in names})
    if sources and others:
        known = ", ".join(name for names in _PART_NAMES.values() for name in names)
        raise UserError(
            f"{found[others[0]]} would not be read, because a folder with parts holds nothing but "
            f"{known}; give it one of these names, join it to a part, or move it elsewhere"
        )
    return sources


def relative_sources(folder: Path, files: Dict[str, List[Path]]) -> Sources:
    """Return files as sources whose ids begin with the path below `folder`, without empty parts."""
    return {
        part: [(path, path.relative_to(folder).as_posix()) for path in paths]
        for part, paths in files.items()
        if paths
    }


def single_file(path: Path, *suffixes: str) -> Sources:
    """Return a file as the only source, if it has one of the suffixes."""
    return {"": [(path, path.name)]} if path.name.endswith(suffixes) else {}


def file_or_folder(
    path: Path,
    suffixes: Tuple[str, ...],
    is_one: Callable[[Path], bool] = lambda _: True,
    part_of: Optional[Callable[[Path], str]] = None,
) -> Sources:
    """Take a file; or `train`, `valid` and `test` with a suffix, else all files with one.

    Args:
        is_one: whether a file with a suffix is in this format; others are passed over.
        part_of: the name of a file's part, such as "train" or "dev", where that is not the name of
            the file; a folder is then in this format only if it has parts.
    """
    if path.is_file():
        found_one = single_file(path, *suffixes)
        return found_one if found_one and is_one(path) else {}
    found: Dict[str, Path] = {}
    for suffix in suffixes:
        for file in filter(is_one, sorted(path.glob(f"[!.]*{suffix}"))):
            name = part_of(file) if part_of else file.name[: -len(suffix)]
            other = found.setdefault(name, file)
            if other != file:
                wrong = (
                    f"be the part {name}; name one file, or put one of each part into a folder of "
                    "its own"
                    if part_of
                    else "be read, and have the same name; leave one of them, or give it another "
                    "name"
                )
                raise UserError(f"{other} and {file} would both {wrong}")
    sources = sources_by_part(found)
    return sources if sources or part_of else relative_sources(path, {"": sorted(found.values())})


def first_line(sources: Sources) -> bytes:
    """Return the first line of the first file, which tells some formats; empty without any."""
    for files in sources.values():
        for file, _ in files:
            return next(read_bytes_by_line(file), (1, b""))[1]
    return b""
