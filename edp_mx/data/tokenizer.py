"""The interface of tokenizers, and the registry of those that there are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Dict, List, Mapping, NamedTuple, Sequence, Tuple

from edp_mx.errors import UserError
from edp_mx.runtime.json_text import read_json

# Type in Hugging Face's tokenizer.json → where the class is. A new tokenizer is one line here.
TOKENIZERS: Mapping[str, Tuple[str, str]] = {
    "WordPiece": ("edp_mx.data.wordpiece", "WordPiece"),
    "BPE": ("edp_mx.data.byte_level_bpe", "ByteLevelBPE"),
}
VOCABULARY, SETTINGS, TOKENIZER = "vocab.txt", "tokenizer_config.json", "tokenizer.json"
MOST_PADDING = 1023  # vectors beyond the last piece, up to a round number of vectors
BYTE_LEVEL = ("vocab.json", "merges.txt")  # of a byte-level BPE without tokenizer.json


class SpecialIds(NamedTuple):
    """The ids that stand for no text; some may coincide."""

    pad: int
    unk: int
    cls: int
    sep: int
    mask: int


class Tokenizer(ABC):
    """A vocabulary of pieces in the order of their ids, and the way from a token to these."""

    kind: ClassVar[str]
    before_token: ClassVar[str] = ""  # what the tokenizer of `library_json` needs there
    pieces: Tuple[str, ...]
    lowercase: bool
    _library: Any  # that of `tokenizers`, made at the first use

    def __len__(self) -> int:
        return len(self.pieces)

    @property
    @abstractmethod
    def special_ids(self) -> SpecialIds:
        """The ids of padding, unknown, start, end and mask."""

    @abstractmethod
    def ids(self, token: str) -> List[int]:
        """Return the pieces of one token, at least one. The caller may change the list."""

    @property
    def has_openings(self) -> bool:
        """Whether a token that begins a text is spelled in another way."""
        return False

    def opening_ids(self, token: str) -> List[int]:
        """Return the pieces of a token that begins a text; see `ids`."""
        return self.ids(token)

    def text_of(self, ids: Sequence[int]) -> str:
        """Return the text of pieces behind others: it begins with a blank or within a word."""
        pieces = (self.pieces[i] for i in ids)
        return "".join(piece[2:] if piece.startswith("##") else f" {piece}" for piece in pieces)

    @abstractmethod
    def whole_words(self) -> List[str]:
        """Return the words that are a single piece."""

    def library_json(self) -> str:
        """Return the `tokenizer.json` with which the library `tokenizers` spells one token.

        It finds nothing where `ids` has the unknown piece, and begins where `before_token` ends.
        """
        return self._library.to_str(pretty=True)

    @abstractmethod
    def to_json(self) -> Dict[str, Any]:
        """Return what `from_json` needs, beside the kind and `lowercase`, as plain values."""

    @classmethod
    @abstractmethod
    def from_json(cls, value: Mapping[str, Any]) -> Tokenizer:
        """Build the tokenizer from `to_json`'s values and `lowercase`."""

    @abstractmethod
    def save(self, folder: Path, *, max_positions: int) -> None:
        """Write the files that `load` and `transformers` read."""

    @classmethod
    @abstractmethod
    def load(cls, folder: Path) -> Tokenizer:
        """Read a folder in Hugging Face's layout."""


def tokenizer_from_json(value: Mapping[str, Any]) -> Tokenizer:
    """Build a tokenizer from a vocabulary file; one that names no kind holds word pieces."""
    return _class_of(value.get("tokenizer", "WordPiece")).from_json(value)


def load_tokenizer(folder: Path) -> Tokenizer:
    """Read the tokenizer of a checkpoint in Hugging Face's layout, of whichever kind it is.

    Raises:
        UserError: it has more pieces than config.json counts vectors, or fewer than padding tells.
    """
    tokenizer, path = _tokenizer_in(folder), folder / "config.json"
    count = read_object(path).get("vocab_size") if path.exists() else None
    if count is None:
        return tokenizer
    if not isinstance(count, int) or not 0 <= count - len(tokenizer) <= MOST_PADDING:
        raise UserError(
            f"{folder}: the vocabulary has {len(tokenizer)} pieces, but vocab_size in {path.name} "
            f"is {count}: it was cut, or they belong to different models; copy both again"
        )
    return tokenizer


def _tokenizer_in(folder: Path) -> Tokenizer:
    if (folder / VOCABULARY).exists():
        return _class_of("WordPiece").load(folder)
    path = folder / TOKENIZER
    if not path.exists():
        path = folder / BYTE_LEVEL[0]
        if not all((folder / name).exists() for name in BYTE_LEVEL):
            raise UserError(f"{folder} has no {VOCABULARY}: copy it there beside the weights")
    try:
        is_whole = path.name == TOKENIZER
        kind = read_object(path)["model"].get("type", "WordPiece") if is_whole else "BPE"
        return _class_of(kind).load(folder)
    except UserError as error:
        raise UserError(f"{path}: {error}") from error
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise UserError(f"{path} is not a tokenizer of Hugging Face's ({error!r})") from error


def read_object(path: Path) -> Dict[str, Any]:
    value = read_json(path)
    if not isinstance(value, dict):
        raise UserError(f"{path} must hold a JSON object of settings")
    return value


def pieces_by_id(ids: Any) -> Tuple[str, ...]:
    """Order the pieces of a vocabulary {piece: id} by their ids, which must be 0, 1, 2, …"""
    if not isinstance(ids, dict):
        raise UserError("it has no vocabulary of pieces with their ids")
    pieces = sorted(ids, key=lambda piece: ids[piece])
    if [ids[piece] for piece in pieces] != list(range(len(pieces))):
        raise UserError(f"the ids of its {len(pieces)} pieces are not 0, 1, 2, …")
    return tuple(pieces)


def _class_of(kind: Any) -> Any:
    """Import a tokenizer's class; the library behind it is loaded at its first use only."""
    if kind not in TOKENIZERS:
        raise UserError(f"a {kind} tokenizer cannot be read, only {' and '.join(TOKENIZERS)}")
    module, name = TOKENIZERS[kind]
    return getattr(import_module(module), name)
