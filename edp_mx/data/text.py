"""Public text of any size, one sentence per line, read as a stream."""

from __future__ import annotations

import gzip
import hashlib
import heapq
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, FrozenSet, Iterable, Iterator, Optional, Sequence, Tuple

from edp_mx.data.readers.assembly import read_lines
from edp_mx.errors import UserError
from edp_mx.runtime.files import PathLike, path_field, whole_file
from edp_mx.runtime.limits import MOST_COUNTED
from edp_mx.runtime.settings import SettingError, Settings, setting

_DIGESTS = 1 << 64


@dataclass(frozen=True)
class TextConfig(Settings):
    """Which text is trained on, and which of it is held out.

    Attributes:
        train: files with one sentence per line, plain or .gz; lines of all files are mixed.
        held_out: a separate file to measure perplexity on; lines of it that also occur in `train`
            are not trained on.
        held_out_fraction: without `held_out`, the held-out fraction of the distinct lines of
            `train`, chosen by a hash of their words, so that a repeated line is on one side.
        max_held_out: maximum number of distinct held-out lines that are scored.
        buffer_size: number of lines that are shuffled at once.
    """

    train: Tuple[str, ...] = path_field(())
    held_out: Optional[str] = path_field()
    held_out_fraction: float = setting(0.02, above=0, below=1)
    max_held_out: int = setting(2000, at_least=1, at_most=MOST_COUNTED)
    buffer_size: int = setting(16_384, at_least=1, at_most=MOST_COUNTED)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.train:
            raise SettingError("train", "must name at least one file, e.g. [text/a.txt, b.txt.gz]")


@dataclass(frozen=True)
class Text:
    """The training lines of some files; every pass over them reads the files again.

    Lines whose digest is in `held_out_digests`, or in the lowest `held_out_fraction`, are not
    trained on. With a fraction, `held_out` is empty until `survey` has found it.
    """

    paths: Tuple[Path, ...]
    held_out: Tuple[str, ...] = ()
    held_out_digests: FrozenSet[int] = frozenset()
    held_out_fraction: float = 0.0

    @classmethod
    def open(cls, config: TextConfig) -> Text:
        """Return the text of a configuration, after reading the held-out file, if there is one."""
        paths = tuple(Path(path) for path in config.train)
        for path in paths:
            if not path.is_file():
                raise UserError(f"text.train: {path} is not a file")
        if config.held_out is None:
            return cls(paths, held_out_fraction=config.held_out_fraction)
        sample = Sample(config.max_held_out)
        for line in lines_of(Path(config.held_out)):
            sample.add(digest(line), line)
        lines = sample.lines()
        if not lines:
            raise UserError(f"text.held_out: {config.held_out} has no line with text")
        return cls(paths, lines, frozenset(map(digest, lines)))

    def holds_out(self, value: int) -> bool:
        return value < self.held_out_fraction * _DIGESTS or value in self.held_out_digests

    def lines(self) -> Iterator[str]:
        for path in self.paths:
            yield from self.training_lines(path)

    def training_lines(self, path: Path) -> Iterator[str]:
        return (line for line in lines_of(path) if not self.holds_out(digest(line)))

    def mixed_lines(self, counts: Sequence[int]) -> Iterator[str]:
        """Yield all training lines; each file is spread evenly over the whole, by its count of
        lines.
        """

        def placed(file: int, count: int) -> Iterator[Tuple[float, int, str]]:
            for i, line in enumerate(self.training_lines(self.paths[file])):
                yield (i + 0.5) / max(1, count), file, line

        places = [placed(file, count) for file, count in enumerate(counts)]
        return (line for _, _, line in heapq.merge(*places, key=lambda item: item[:2]))


class Sample:
    """The `size` distinct lines with the lowest digests: a random sample in bounded memory."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._lines: Dict[int, str] = {}

    def add(self, value: int, line: str) -> None:
        self._lines[value] = line
        if len(self._lines) > 2 * self._size + 1000:
            self._prune()

    def lines(self) -> Tuple[str, ...]:
        """Return the sample, in the order of the digests."""
        self._prune()
        return tuple(self._lines.values())

    def _prune(self) -> None:
        self._lines = {value: self._lines[value] for value in sorted(self._lines)[: self._size]}


def lines_of(path: Path) -> Iterator[str]:
    """Yield the non-blank lines of a plain or `.gz` file, without blanks at their ends."""
    return (line for _, text in read_lines(path) if (line := text.strip()))


def digest(line: str) -> int:
    """Return 64 bits that depend on the words of a line, not on case or blanks."""
    words = " ".join(line.casefold().split()).encode()
    return int.from_bytes(hashlib.blake2b(words, digest_size=8).digest(), "big")


def write_lines(path: PathLike, lines: Iterable[str]) -> int:
    """Write lines as UTF-8, compressed if the name ends in .gz; whole or not at all. Count them."""
    count = 0
    with whole_file(path) as file, _compressed(file, str(path)) as out:
        for line in lines:
            out.write(f"{' '.join(line.split())}\n".encode())
            count += 1
    return count


def _compressed(file: Any, name: str) -> Any:
    """Return the file itself, or a stream that compresses into it, without a time stamp."""
    return gzip.GzipFile("", "wb", 6, file, mtime=0) if name.endswith(".gz") else nullcontext(file)
