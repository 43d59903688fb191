"""Word pieces: how a BERT spells every token with a vocabulary of fixed size."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable, Dict, List, Tuple

from edp_mx.data.readers.assembly import read_lines, split_tokens
from edp_mx.data.word_splitting import LONGEST_WORD, SPECIAL_PIECES, word_splitter
from edp_mx.data.wordpiece_learning import learn_pieces
from edp_mx.errors import UserError
from edp_mx.runtime.files import PathLike, write_text

__all__ = ["SPECIAL_PIECES", "WordPiece", "learn_pieces"]

_MAX_CACHED = 1 << 17  # tokens whose ids are kept, the last used ones
_LONGEST_CACHED = 64  # characters; a line without blanks is a single token


@dataclass(frozen=True)
class WordPiece:
    """A vocabulary of word pieces and the way from a token to their ids.

    Args:
        pieces: as in BERT's `vocab.txt`; a place is an id. "##s" stands within a word only. The
            special pieces [PAD] [UNK] [CLS] [SEP] [MASK] may have any place.
        lowercase: tokens are read in lower case without accents, as by BERT's uncased models.

    Raises:
        UserError: a piece occurs twice, or a special piece is missing.

    Source: GluonNLP's `BERTTokenizer`: the longest piece first, from left to right.
    """

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

    def __len__(self) -> int:
        return len(self.pieces)

    def __reduce__(self) -> Tuple[Any, ...]:
        """The tokenizer and its cache are made anew on the other side."""
        return WordPiece, (self.pieces, self.lowercase)

    @cached_property
    def special_ids(self) -> Tuple[int, ...]:
        """The ids of [PAD] [UNK] [CLS] [SEP] [MASK], in this order."""
        return tuple(self.pieces.index(piece) for piece in SPECIAL_PIECES)

    @property
    def pad_id(self) -> int:
        """The id that fills up a row."""
        return self.special_ids[0]

    @property
    def unk_id(self) -> int:
        """The id of what cannot be spelled."""
        return self.special_ids[1]

    @property
    def cls_id(self) -> int:
        """The id that opens every utterance."""
        return self.special_ids[2]

    @property
    def sep_id(self) -> int:
        """The id that closes every utterance."""
        return self.special_ids[3]

    @property
    def mask_id(self) -> int:
        """The id that hides a piece in pre-training."""
        return self.special_ids[4]

    def ids(self, token: str) -> List[int]:
        """The pieces of one token, at least one.

        Edge cases:
            Punctuation splits ("don't" is don ' t), and a blank within a token (the no-break space)
            does too. A word that cannot be spelled, or of more than `LONGEST_WORD` characters, is
            one [UNK]; so is a token of which nothing is left, such as control characters alone. A
            token "[CLS]" is text: its brackets and letters.

        Example:
            >>> pieces = (*SPECIAL_PIECES, "don", "'", "t", "##s")
            >>> WordPiece(pieces).ids("Don'ts")
            [5, 6, 7, 8]
        """
        if len(token) > _LONGEST_CACHED:
            return list(self._look_up(token))
        return list(self._look_up_cached(token))

    def text_ids(self, text: str) -> List[int]:
        """The pieces of all tokens of a line, which blanks part, without [CLS] and [SEP]."""
        return [i for token in split_tokens(text) for i in self.ids(token)]

    @cached_property
    def _look_up_cached(self) -> Callable[[str], Tuple[int, ...]]:
        """`_look_up` with a bounded memory; text of any size goes through it."""
        return lru_cache(_MAX_CACHED)(self._look_up)

    @cached_property
    def _look_up(self) -> Callable[[str], Tuple[int, ...]]:
        """Token → ids. GluonNLP, and with it MXNet, is imported at the first use only."""
        from gluonnlp.data import BERTTokenizer
        from gluonnlp.vocab import BERTVocab

        places = {piece: i for i, piece in enumerate(self.pieces)}
        vocab = BERTVocab(Counter(self.pieces))  # in an order of its own: the places are ours
        tokenizer = BERTTokenizer(vocab, max_input_chars_per_word=LONGEST_WORD)
        tokenizer.basic_tokenizer = SimpleNamespace(tokenize=word_splitter(self.lowercase))
        unknown = (self.unk_id,)

        def look_up(token: str) -> Tuple[int, ...]:
            return tuple(places[piece] for piece in tokenizer(token)) or unknown

        return look_up

    @classmethod
    def from_file(cls, path: PathLike, *, lowercase: bool = True) -> WordPiece:
        """Reads BERT's `vocab.txt`: one piece a line.

        Raises:
            UserError: the file is missing or not UTF-8, a line before the last piece is empty, a
                piece occurs twice (with file and line), or a special piece is missing.
        """
        lines: Dict[str, int] = {}
        empty = 0
        for number, line in read_lines(Path(path)):
            piece = line.strip(" \t")
            if not piece:
                empty = empty or number
                continue
            if empty:
                raise UserError(
                    f"{path}, line {empty}: empty, but each line is a word piece and its number "
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

    def write(self, path: PathLike) -> None:
        """Writes `vocab.txt`, whole or not at all."""
        write_text(path, "".join(f"{piece}\n" for piece in self.pieces))
