"""fastText's `.bin` models, read without fastText.

fastText believes a file: of a hundred damaged ones, a quarter ended its process or never came back,
and those that were cut off gave wrong vectors. Here each number is checked before it is used, the
file's length must be what they add up to, and only the rows that are asked for are read.
"""

from __future__ import annotations

import mmap
import struct
from pathlib import Path
from typing import Dict, Iterator, List, Tuple

import numpy as np

from edp_mx.errors import UserError
from edp_mx.runtime.files import PathLike
from edp_mx.runtime.limits import MOST_OF_A_VECTOR, MOST_WIDE

_MAGIC, _VERSIONS, _SUPERVISED = 793712314, (11, 12), 3
_END_OF_LINE = b"</s>"  # which has no n-grams
_LONGEST = 10_000  # bytes of a word, characters of an n-gram


class FastTextModel:
    """A model in a file; its words are those that have a vector of their own.

    Args:
        path: a `.bin` file of fastText, not one that was quantized.

    Raises:
        UserError: there is none, or it is no such model, is cut off, or is damaged.

    Edge cases: a damage that only changes the numbers of a vector is not noticed where they stay
        below a million.

    Source: fastText 0.9.2, fasttext.cc `loadModel`, dictionary.cc `load` and `computeSubwords`.
    """

    def __init__(self, path: PathLike) -> None:
        self._path, self._at = Path(path), 0
        try:
            if not self._path.is_file():
                raise UserError(
                    f"{path} {'is no file' if self._path.exists() else 'does not exist'}"
                )
            with self._path.open("rb") as file:
                self._content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except OSError as error:
            raise UserError(f"cannot read {path}: {error.strerror}") from error
        except ValueError as error:  # an empty file cannot be mapped
            raise self._damaged("it is empty") from error
        self._read_settings()
        self._rows: Dict[bytes, int] = self._read_words()
        self._vectors = self._read_matrix(self._num_words + self._bucket)  # (words + n-grams, D)
        self._read_flag("quantized outputs")
        self._read_matrix(self._num_labels if self._is_supervised else self._num_words)
        if self._at != len(self._content):
            raise self._damaged(f"{len(self._content) - self._at:,} bytes are left over")

    def words(self) -> List[str]:
        """Return the words, the most frequent first, without the end of a line."""
        return [word.decode("utf-8", "replace") for word in self._rows if word != _END_OF_LINE]

    def vector(self, word: str) -> np.ndarray:
        """Return the vector of any word: the mean of its own and of those of its n-grams.

        Raises:
            UserError: it is not finite, or has values that no training gives.

        Shapes: float32 (D,).
        """
        own = self._rows.get(word.encode("utf-8", "replace"))
        rows = [] if own is None else [own]
        if word.encode("utf-8", "replace") != _END_OF_LINE:
            rows += self._ngrams(f"<{word}>".encode("utf-8", "replace"))
        if not rows:
            return np.zeros(self.dimension, np.float32)
        with np.errstate(over="ignore", invalid="ignore"):
            vector = self._vectors[rows].sum(axis=0, dtype=np.float32)  # (D,)
            vector *= np.float32(1.0 / len(rows))
        if not (np.abs(vector) <= MOST_OF_A_VECTOR).all():
            said = f"the vector of {word!r} is not finite, or has values above"
            raise self._damaged(f"{said} {MOST_OF_A_VECTOR:g}")
        return vector

    def _read_settings(self) -> None:
        magic, version = self._take("<ii")
        if magic != _MAGIC or version not in _VERSIONS:
            raise self._damaged("it does not begin like one")
        self.dimension, *_, kind, self._bucket, self._minn, self._maxn, _, _ = self._take("<12id")
        self._is_supervised = kind == _SUPERVISED
        if version == 11 and self._is_supervised:  # that version had no n-grams there
            self._maxn = 0
        is_sound = 0 < self.dimension <= MOST_WIDE and self._bucket >= (self._maxn > 0)
        if not (is_sound and 0 <= self._minn <= _LONGEST and 0 <= self._maxn <= _LONGEST):
            raise self._damaged("its settings are none of a model")

    def _read_words(self) -> Dict[bytes, int]:
        """The words by their rows; labels come after them."""
        size, self._num_words, self._num_labels, _, pruned = self._take("<iiiqq")
        if min(self._num_words, self._num_labels) < 0 or size != self._num_words + self._num_labels:
            raise self._damaged("its numbers of words do not add up")
        if pruned > 0:
            raise self._damaged("it was pruned and quantized, which is not read here")
        if pruned == 0:
            self._maxn = 0
        found: Dict[bytes, int] = {}
        for row, (word, kind) in enumerate(self._entries(size)):
            if kind != (row >= self._num_words):
                raise self._damaged("its words and labels are mixed")
            if kind == 0:
                found[word] = row
        if len(found) != self._num_words:
            raise self._damaged("a word occurs twice")
        if self._read_flag("quantized vectors"):
            raise self._damaged("it was quantized, which is not read here")
        return found

    def _entries(self, size: int) -> Iterator[Tuple[bytes, int]]:
        """Each word or label, and 0 or 1 for which it is."""
        content, unpack = self._content, struct.Struct("<qb").unpack_from
        for _ in range(size):
            end = content.find(b"\0", self._at, self._at + _LONGEST)
            if end < 0 or end + 10 > len(content):
                raise self._damaged("its list of words is cut off")
            word = content[self._at : end]
            _, kind = unpack(content, end + 1)
            self._at = end + 10
            yield word, kind

    def _read_matrix(self, rows: int) -> np.ndarray:
        """A matrix of so many rows, which stays on the disk."""
        found = self._take("<qq")
        if found != (rows, self.dimension):
            raise self._damaged(f"a matrix is {found}, not {rows} × {self.dimension}")
        count = rows * self.dimension
        if self._at + 4 * count > len(self._content):
            raise self._damaged("it is cut off")
        flat = np.frombuffer(self._content, "<f4", count, self._at)
        self._at += 4 * count
        return flat.reshape(rows, self.dimension)

    def _read_flag(self, what: str) -> bool:
        (value,) = self._take("<b")
        if value not in (0, 1):
            raise self._damaged(f"whether it has {what} is {value}")
        return bool(value)

    def _ngrams(self, word: bytes) -> List[int]:
        """The rows of a word's n-grams: each has that of its FNV hash."""
        starts = [i for i, byte in enumerate(word) if byte & 0xC0 != 0x80]  # of characters
        ends, rows = [*starts[1:], len(word)], []
        for first, start in enumerate(starts if self._maxn else ()):
            value = 2166136261
            for n, last in enumerate(range(first, min(first + self._maxn, len(starts))), start=1):
                for byte in word[starts[last] : ends[last]]:
                    signed = byte | 0xFFFFFF00 if byte > 127 else byte
                    value = ((value ^ signed) * 16777619) & 0xFFFFFFFF
                is_edge = n == 1 and (start == 0 or ends[last] == len(word))
                if n >= self._minn and not is_edge:
                    rows.append(self._num_words + value % self._bucket)
        return rows

    def _take(self, form: str) -> Tuple:
        size = struct.calcsize(form)
        if self._at + size > len(self._content):
            raise self._damaged("it is cut off")
        values = struct.unpack_from(form, self._content, self._at)
        self._at += size
        return values

    def _damaged(self, why: str) -> UserError:
        return UserError(f"{self._path} is not a fastText model that can be read ({why})")
