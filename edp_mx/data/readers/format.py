"""A file format of corpora, and what formats share in finding their files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Dict, Iterator, List, Optional, Tuple

from edp_mx.data.readers.assembly import Assembler
from edp_mx.data.utterance import Utterance

# By part ("train", "validation", "test"; "" where a corpus has none) what a reader opens, each with
# the beginning of the ids that come from it.
Sources = Dict[str, List[Tuple[Path, str]]]
# Our name for a part → the names that its folder or file may have.
_PART_NAMES = {
    "train": ("train",),
    "validation": ("valid", "validation", "dev"),
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
    """

    name: str
    example: str
    find: Callable[[Path], Sources]
    read: Callable[[Path, Assembler, str], Iterator[Utterance]]
    files_of: Callable[[Path], List[Path]] = lambda source: [source]


def sources_by_part(find: Callable[[str], Optional[Path]]) -> Sources:
    """Return the source of each part that `find` knows under one of the part's names."""
    found: Sources = {}
    for part, names in _PART_NAMES.items():
        for name in names:
            path = find(name)
            if path is not None:
                found.setdefault(part, [(path, name)])
    return found


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


def file_or_folder(path: Path, suffixes: Tuple[str, ...]) -> Sources:
    """Take a file; or `train`, `valid` and `test` with a suffix, else all files with one."""
    if path.is_file():
        return single_file(path, *suffixes)

    def part(name: str) -> Optional[Path]:
        return next((p for s in suffixes if (p := path / f"{name}{s}").is_file()), None)

    every = sorted(found for suffix in suffixes for found in path.glob(f"*{suffix}"))
    return sources_by_part(part) or relative_sources(path, {"": every})
