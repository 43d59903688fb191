"""Word vectors: reading fastText's text files and models."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Iterator, List, Optional, Sequence, Tuple

import numpy as np

from edp_mx.data.fasttext_model import FastTextModel
from edp_mx.data.readers.assembly import read_bytes_by_line
from edp_mx.errors import UserError
from edp_mx.runtime.files import PathLike, path_field
from edp_mx.runtime.limits import MOST_COUNTED, MOST_OF_A_VECTOR, MOST_WIDE
from edp_mx.runtime.settings import SettingError, Settings, setting

_TEXT_SUFFIXES = (".vec", ".txt", ".vec.gz", ".txt.gz")


@dataclass(frozen=True)
class EmbeddingsConfig(Settings):
    """Where word vectors come from.

    Args:
        path: a fastText file: `.vec` or `.txt` (plain or `.gz`), or a `.bin` model; without one,
            vectors are random at the start.
        dimension: the dimension of a vector; must be the file's.
        is_trainable: whether training changes the vectors.
    """

    path: Optional[str] = path_field()
    dimension: int = setting(300, at_least=1, at_most=MOST_WIDE)
    is_trainable: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.path is not None and not self.path.endswith((*_TEXT_SUFFIXES, ".bin")):
            raise SettingError(
                "path", f"must end in .vec, .txt (or .gz of these) or .bin, not {self.path}"
            )


def load_embeddings(
    config: EmbeddingsConfig, wanted_words: Sequence[str]
) -> Tuple[Tuple[str, ...], np.ndarray]:
    """Return the wanted words that are found, in that order, and their vectors.

    A text file is streamed. The first of repeated words wins; a lower-case word that the file has
    only in another case takes the first such form. A `.bin` model builds a vector for any word.
    Without a path nothing is found.

    Raises:
        UserError: the file is missing or torn, has another dimension, or a value is no finite
            number (with file and line).

    Shapes: the matrix is float32 (found words, dimension).
    """
    wanted = list(dict.fromkeys(wanted_words))
    if config.path is None or not wanted:
        return (), np.zeros((0, config.dimension), dtype=np.float32)
    if config.path.endswith(".bin"):
        return tuple(wanted), _model_vectors(config, wanted)
    return _text_vectors(config, wanted)


def read_embedding_words(path: PathLike) -> Iterator[str]:
    """Stream the words of an embeddings file, in its order (the most frequent first)."""
    if str(path).endswith(".bin"):
        yield from FastTextModel(path).words()
        return
    for _, line, dimension in _vector_lines(Path(path)):
        yield line.rsplit(b" ", dimension)[0].decode("utf-8", "replace")


def _text_vectors(
    config: EmbeddingsConfig, wanted: List[str]
) -> Tuple[Tuple[str, ...], np.ndarray]:
    """Stream a text file; a word's own spelling wins over its other cases."""
    path = Path(str(config.path))
    row_of = {word: row for row, word in enumerate(wanted)}
    beginnings = {word.split(" ", 1)[0] for word in wanted}  # a line is parsed if its own is here
    matrix = np.zeros((len(wanted), config.dimension), dtype=np.float32)
    found = np.zeros(len(wanted), np.int8)  # 1: in another case, 2: as it is spelled
    for number, line, _ in _vector_lines(path, config.dimension):
        beginning = line[: line.find(b" ")].decode("utf-8", "replace")
        if beginning not in beginnings and beginning.lower() not in beginnings:
            continue
        name, *values = line.rsplit(b" ", config.dimension)
        word = name.decode("utf-8", "replace")
        row, rank = row_of.get(word, row_of.get(word.lower())), 1 + (word in row_of)
        if row is not None and found[row] < rank:
            found[row] = rank
            matrix[row] = _parse(values, f"{path}, line {number}")  # (D,)
    return tuple(word for word, rank in zip(wanted, found) if rank), matrix[found > 0]


def _vector_lines(path: Path, wanted: int = 0) -> Iterator[Tuple[int, bytes, int]]:
    """Yield number, line and dimension of each vector, which must be `wanted` unless that is 0."""
    dimension, promised, number = wanted, 0, 0
    for number, line in read_bytes_by_line(path):
        line = line.rstrip(b" ")
        if number == 1:
            promised, header = _header(line)
            found = header or line.count(b" ")
            dimension = wanted or found
            # Without a header, the first line may hold a word with spaces and so be longer.
            if found < dimension or (header and found != dimension):
                raise UserError(_other_dimension(f"{path}, line 1", found, dimension))
            if header:
                continue
        if line.count(b" ") < wanted:
            raise UserError(
                f"{path}, line {number}: {line.count(b' ')} values after the word, not {wanted}"
            )
        yield number, line, dimension
    if number <= promised:
        raise UserError(
            f"{path} ends after {max(0, number - 1):,} of the {promised:,} words that its first "
            "line promises: it was cut off; fetch it again"
        )


def _other_dimension(place: str, found: int, wanted: int) -> str:
    return (
        f"{place}: vectors of {found} values, but data.embeddings.dimension is {wanted}; set it to "
        f"{found}"
    )


def _header(line: bytes) -> Tuple[int, int]:
    """Return the numbers of a header "words dimension", zeros if the line is none."""
    fields = line.split(b" ", 2)
    if len(fields) != 2 or not all(field.isdigit() for field in fields):
        return 0, 0
    words, dimension = (int(each) if len(each) < 10 else MOST_COUNTED for each in fields)
    return words, dimension


def _parse(values: List[bytes], place: str) -> np.ndarray:
    try:
        vector = np.array([float(value) for value in values], dtype=np.float32)
    except ValueError as error:
        raise UserError(f"{place}: not a row of numbers ({error})") from error
    if not (np.abs(vector) <= MOST_OF_A_VECTOR).all():
        raise UserError(f"{place}: a value is not finite, or above {MOST_OF_A_VECTOR:g}")
    return vector


def _model_vectors(config: EmbeddingsConfig, wanted: List[str]) -> np.ndarray:
    model = FastTextModel(str(config.path))
    if model.dimension != config.dimension:
        raise UserError(_other_dimension(str(config.path), model.dimension, config.dimension))
    matrix = np.stack([model.vector(word) for word in wanted])  # (wanted, D)
    if not matrix.any():
        raise UserError(f"{config.path}: all vectors are zero, so that it has learned nothing")
    return matrix
