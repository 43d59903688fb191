"""Word pieces: how a BERT spells every token with a vocabulary of fixed size."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Dict, List, Mapping, Tuple

from edp_mx.data.readers.assembly import read_lines
from edp_mx.data.tokenizer import (
    SETTINGS,
    TOKENIZER,
    VOCABULARY,
    SpecialIds,
    Tokenizer,
    pieces_by_id,
    read_object,
)
from edp_mx.data.wordpiece_learning import LONGEST_WORD, SPECIAL_PIECES, as_utf8, bert_steps
from edp_mx.errors import UserError
from edp_mx.runtime.files import PathLike, write_json, write_text

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class WordPiece(Tokenizer):
    """A vocabulary of word pieces: the longest piece first, from left to right.

    Args:
        pieces: as in BERT's `vocab.txt`; a place is an id. "##s" stands within a word only. The
            special pieces `[PAD] [UNK] [CLS] [SEP] [MASK]` may have any place.
        lowercase: tokens are read in lower case without accents, as by BERT's uncased models.

    Raises:
        UserError: a piece occurs twice, or a special piece is missing.
    """

    kind: ClassVar[str] = "WordPiece"
    pieces: Tuple[str, ...]
    lowercase: bool = True

    def __post_init__(self) -> None:
        if len(set(self.pieces)) != len(self.pieces):
            piece, count = Counter(self.pieces).most_common(1)[0]
            raise UserError(f"the word piece {piece!r} is there {count} times; keep one of them")
        missing = [piece for piece in SPECIAL_PIECES if piece not in self.pieces]
        if missing:
            raise UserError(
                f"the {len(self.pieces)} word pieces lack {' '.join(missing)}; "
                "take the vocab.txt of a BERT, or add what is missing"
            )

    @cached_property
    def special_ids(self) -> SpecialIds:
        return SpecialIds(*map(self.pieces.index, SPECIAL_PIECES))

    def ids(self, token: str) -> List[int]:
        """Return the pieces of one token, at least one.

        Punctuation and blanks within a token (the no-break space) split it. A word that cannot be
        spelled, or of more than `LONGEST_WORD` characters, is one [UNK]; so is a token of which
        nothing is left, such as control characters. A token "[CLS]" is text: its brackets and
        letters.
        """
        return self._library.encode(as_utf8(token)).ids or [self.special_ids.unk]

    def whole_words(self) -> List[str]:
        return [piece for piece in self.pieces if not piece.startswith(("##", "["))]

    @cached_property
    def _library(self) -> Any:
        """Make the library's tokenizer; it is imported at the first use only."""
        from tokenizers import Tokenizer as Library
        from tokenizers import models

        places = {piece: i for i, piece in enumerate(self.pieces)}
        library = Library(
            models.WordPiece(places, unk_token="[UNK]", max_input_chars_per_word=LONGEST_WORD)
        )
        library.normalizer, library.pre_tokenizer = bert_steps(self.lowercase)
        return library

    def to_json(self) -> Dict[str, Any]:
        return {"pieces": list(self.pieces)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> WordPiece:
        return cls(tuple(value["pieces"]), bool(value["lowercase"]))

    @classmethod
    def from_file(cls, path: PathLike, *, lowercase: bool = True) -> WordPiece:
        """Read BERT's `vocab.txt`: one piece per line; an error names the file and the line."""
        entries = [line.strip(" \t") for _, line in read_lines(Path(path))]
        while entries and not entries[-1]:
            del entries[-1]
        lines: Dict[str, int] = {}
        for number, piece in enumerate(entries, start=1):
            if not piece:
                raise UserError(
                    f"{path}, line {number}: empty, but each line is a word piece and its number "
                    "the id; restore the piece"
                )
            if piece in lines:
                raise UserError(
                    f"{path}, line {number}: {piece!r} is already on line {lines[piece]}; "
                    "each word piece must be there once"
                )
            lines[piece] = number
        try:
            return cls(tuple(lines), lowercase)
        except UserError as error:
            raise UserError(f"{path}: {error}") from error

    def save(self, folder: Path, *, max_positions: int) -> None:
        """Write `vocab.txt` and the settings with which `transformers` finds the same pieces."""
        write_text(folder / VOCABULARY, "".join(f"{piece}\n" for piece in self.pieces))
        settings = {
            "tokenizer_class": "BertTokenizer",
            "do_lower_case": self.lowercase,
            "strip_accents": None,
            "tokenize_chinese_chars": True,
            "model_max_length": max_positions,
            **{f"{name}_token": piece for name, piece in zip(SpecialIds._fields, SPECIAL_PIECES)},
        }
        write_json(folder / SETTINGS, settings)

    @classmethod
    def load(cls, folder: Path) -> WordPiece:
        """Read the pieces of a BERT, and whether its words are put in lower case (by default, yes).

        `transformers` 5 writes no vocab.txt; the pieces are then those of tokenizer.json.
        """
        settings = read_object(folder / SETTINGS) if (folder / SETTINGS).exists() else {}
        if (folder / VOCABULARY).exists():
            lowercase = _lowercase(folder / SETTINGS, settings, default=True)
            return cls.from_file(folder / VOCABULARY, lowercase=lowercase)
        tokenizer = read_object(folder / TOKENIZER)
        normalizer = tokenizer.get("normalizer")
        default = normalizer.get("lowercase", True) if isinstance(normalizer, dict) else True
        lowercase = _lowercase(folder / SETTINGS, settings, default=default)
        return cls(pieces_by_id(tokenizer["model"]["vocab"]), lowercase)


def _lowercase(path: Path, settings: Dict[str, Any], *, default: bool) -> bool:
    """Return do_lower_case; warn where accents are to be treated in another way than case."""
    lowercase = settings.get("do_lower_case", default)
    if not isinstance(lowercase, bool):
        raise UserError(f"{path}: do_lower_case is {lowercase!r}; it must be true or false")
    strips = settings.get("strip_accents")
    if strips is not None and strips != lowercase:
        logger.warning(
            "%s: strip_accents %s is not followed: accents are dropped exactly where words are put "
            "in lower case, so that words with accents get other pieces than in transformers",
            path,
            strips,
        )
    return lowercase
