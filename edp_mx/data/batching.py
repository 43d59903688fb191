"""A padded batch of encoded utterances, and the ids of each distinct token, kept once."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from functools import cached_property
from typing import Iterable, List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from edp_mx.data.template import Frame
from edp_mx.data.tokenizer import Tokenizer
from edp_mx.data.utterance import MASK, REPLY, SEPARATOR
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.errors import UserError


class WordInputs(NamedTuple):
    """Inputs of a CLC. Shapes: words (M, T), characters (M, T, C): int32, 0 for none."""

    words: np.ndarray
    characters: np.ndarray


class PieceInputs(NamedTuple):
    """Inputs of a BERT.

    Shapes: pieces (M, P), padded with 0; lengths (M,), with those around it; firsts (M, T), the
        place of each token's first piece, 0 if there is no token: int32.
    """

    pieces: np.ndarray
    lengths: np.ndarray
    firsts: np.ndarray


Read = Union[WordInputs, PieceInputs]  # of an utterance's text


class StateInputs(NamedTuple):
    """The outputs of a model's frozen part for what it read; see `data.stored_states`.

    Shapes: states (M, R, H), padded with 0: float32.
    """

    states: np.ndarray
    read: Read


Inputs = Union[Read, StateInputs]


@dataclass(frozen=True, eq=False)
class Batch:
    """M utterances, padded with zeros to the longest; a label that the vocabulary lacks is 0.

    Shapes: lengths (M,), in tokens; slots (M, T), intents (M,): int32; indices (M,): int64, places
        in the corpus; is_cut (M,), which lost their ends, None where none did.
    """

    inputs: Inputs
    lengths: np.ndarray
    slots: np.ndarray
    intents: np.ndarray
    indices: np.ndarray
    is_cut: Optional[np.ndarray] = None

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def pieces(self) -> PieceInputs:
        """The pieces of its utterances, also where it has stored states in their place."""
        found = self.inputs.read if isinstance(self.inputs, StateInputs) else self.inputs
        assert isinstance(found, PieceInputs)
        return found

    @property
    def mask(self) -> np.ndarray:
        """Which places are tokens, (M, T) bool."""
        return np.arange(self.slots.shape[1]) < self.lengths[:, None]  # (M, T)


@dataclass(frozen=True, eq=False)
class WordTable:
    """Word and characters of each distinct token, as a CLC reads them.

    Shapes: F distinct tokens. words (F,), offsets (F + 1,), characters (those of all tokens,):
        token f has `characters[offsets[f]:offsets[f + 1]]`.
    """

    words: np.ndarray
    offsets: np.ndarray
    characters: np.ndarray

    @classmethod
    def of(cls, tokens: Sequence[str], vocabulary: Vocabulary, max_characters: int) -> WordTable:
        rows = (vocabulary.character_ids(token[:max_characters]) for token in tokens)
        words = np.fromiter(map(vocabulary.word_id, tokens), np.int32, len(tokens))  # (F,)
        return cls(words, *_flatten(rows))

    def inputs(self, tokens: np.ndarray, is_token: np.ndarray) -> WordInputs:
        """Make a batch. Shapes: tokens (M, T), places in this table where `is_token` (M, T)."""
        distinct, inverse = np.unique(tokens[is_token], return_inverse=True)  # (D,), (tokens,)
        starts = self.offsets[distinct]
        lengths = self.offsets[distinct + 1] - starts
        places, is_character = gather(starts, lengths, int(lengths.max(initial=1)))
        table = np.where(is_character, self.characters[places], 0)  # (D, C)
        characters = np.zeros((*tokens.shape, table.shape[1]), dtype=np.int32)  # (M, T, C)
        characters[is_token] = table[inverse]
        return WordInputs(np.where(is_token, self.words[tokens], 0), characters)


@dataclass(frozen=True, eq=False)
class PieceTable:
    """Word pieces of each distinct token, as a BERT reads them. Shapes: as in `WordTable`.

    Attributes:
        room: how many pieces an utterance may have between them.
        ends: (F,), which tokens a text begins behind, where tokens that begin a text are spelled in
            another way: these spellings are then the rows F … 2 F − 1.
    """

    offsets: np.ndarray
    pieces: np.ndarray
    frame: Frame
    room: int
    pad: int
    ends: Optional[np.ndarray] = None

    @classmethod
    def of(
        cls,
        tokens: Sequence[str],
        tokenizer: Tokenizer,
        *,
        max_pieces: int,
        template: Optional[str] = None,
    ) -> PieceTable:
        frame = Frame.of(template, tokenizer)
        room = max_pieces - frame.size
        if room < 1:
            raise UserError(
                f"data.max_pieces is {max_pieces}, of which model.template takes {frame.size}: "
                "no room is left for the utterance; raise it or write a shorter template"
            )
        ids = tokenizer.special_ids
        special = {SEPARATOR: [ids.sep], REPLY: [ids.sep], MASK: [ids.mask]}
        spellings = [tokenizer.ids, *[tokenizer.opening_ids] * tokenizer.has_openings]
        offsets, pieces = _flatten(
            special.get(token) or spelled(token)[:room] for spelled in spellings for token in tokens
        )
        ends = None
        if tokenizer.has_openings:
            ends = np.fromiter((token in (SEPARATOR, REPLY) for token in tokens), bool, len(tokens))
        return cls(offsets, pieces, frame, room, ids.pad, ends)

    @cached_property
    def counts(self) -> np.ndarray:
        """(F,): the most pieces of each token, at least 1."""
        return self._counts if self.ends is None else self._counts.reshape(2, -1).max(axis=0)

    @cached_property
    def _counts(self) -> np.ndarray:
        return np.diff(self.offsets)

    def _rows(self, tokens: np.ndarray) -> np.ndarray:
        """Return the place of each token's spelling. Shapes: (M, T) → (M, T)."""
        if self.ends is None:
            return tokens
        begins = np.ones(tokens.shape, bool)  # (M, T)
        begins[:, 1:] = self.ends[tokens[:, :-1]]
        return tokens.astype(np.int64) + begins * len(self.ends)

    def inputs(self, tokens: np.ndarray, is_token: np.ndarray) -> PieceInputs:
        """Make a batch of pieces in their frame. Shapes: as in `WordTable.inputs`."""
        before, after, size = self.frame.before, self.frame.after, self.frame.size
        tokens = self._rows(tokens)  # (M, T)
        counts = np.where(is_token, self._counts[tokens], 0)  # (M, T)
        ends = len(before) + counts.cumsum(axis=1)  # (M, T)
        lengths = size + counts.sum(axis=1)  # (M,)
        pieces = np.full((len(tokens), int(lengths.max(initial=size))), self.pad, np.int32)
        pieces[:, : len(before)] = before
        rest = (lengths - len(after))[:, None]  # (M, 1), where the utterance ends
        pieces[np.arange(len(tokens))[:, None], rest + np.arange(len(after))] = after
        flat = counts[is_token]  # (tokens,)
        places, is_piece = gather(self.offsets[tokens[is_token]], flat, int(flat.max(initial=1)))
        is_filled = np.arange(pieces.shape[1]) < rest  # (M, P)
        is_filled[:, : len(before)] = False
        pieces[is_filled] = self.pieces[places][is_piece]  # both row by row, token by token
        firsts = np.where(is_token, ends - counts, 0)  # (M, T)
        return PieceInputs(pieces, lengths.astype(np.int32), firsts.astype(np.int32))


def gather(starts: np.ndarray, lengths: np.ndarray, width: int) -> Tuple[np.ndarray, np.ndarray]:
    """Return places in a flat array, (rows, width), and which of them belong to their row."""
    steps = np.arange(width)
    is_inside = steps < lengths[:, None]
    return np.where(is_inside, starts[:, None] + steps, 0), is_inside


def _flatten(rows: Iterable[List[int]]) -> Tuple[np.ndarray, np.ndarray]:
    """Flatten rows of any length into offsets and numbers, in small types, one row at a time."""
    offsets, flat = array("q", [0]), array("i")
    for row in rows:
        flat.extend(row)
        offsets.append(len(flat))
    return _small(np.frombuffer(offsets, np.int64)), _small(np.frombuffer(flat, np.int32))


def _small(numbers: np.ndarray) -> np.ndarray:
    """Cast numbers ≥ 0 to the smallest signed type of at least two bytes that holds them."""
    largest = int(numbers.max(initial=0))
    return numbers.astype(np.result_type(np.min_scalar_type(-largest - 1), "i2"))
