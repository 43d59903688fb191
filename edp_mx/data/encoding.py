"""Encoding: a corpus as flat arrays, with one table of the ids of each distinct token."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterator, Optional, Sequence, Tuple, Union

import numpy as np

from edp_mx.data.batching import Batch, Inputs, PieceTable, WordTable, gather
from edp_mx.data.columnar_corpus import numbered
from edp_mx.data.columns import Columns, chunks
from edp_mx.data.stored_states import StoredStates
from edp_mx.data.utterance import REPLY, Utterance
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.runtime.ragged import gathered

Indices = Union[Sequence[int], np.ndarray]
MAX_TOKENS = 64
MAX_CHARACTERS = 32
MAX_PIECES = 128
Table = Union[WordTable, PieceTable]


@dataclass(frozen=True, eq=False)
class EncodedCorpus:
    """Utterances as ids, stored without padding; the text may stay in a file.

    Attributes:
        rows: (U,), which of the corpus' utterances these are.
        lengths: (U,), the number of tokens of each, cut to the maximum, in the smallest signed
            type.
        sizes: (U,), by which those that cost about the same are batched: their tokens or pieces.
        intent_ids, slot_ids: the id of each intent and each tag of `columns`, −1 if unknown.
        skips: (U,), how many of its first tokens each loses; None where none loses any.
        is_cut: (U,), which were longer than the maximum and lost their last tokens.
        states: the outputs of a frozen part for each utterance, once they are stored; batches
            then have it in place of words or pieces.
    """

    columns: Columns
    rows: np.ndarray
    lengths: np.ndarray
    sizes: np.ndarray
    intent_ids: np.ndarray
    slot_ids: np.ndarray
    table: Table
    is_cut: np.ndarray
    skips: Optional[np.ndarray] = None
    states: Optional[StoredStates] = None

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def num_cut(self) -> int:
        """How many utterances lost some tokens at their end."""
        return int(self.is_cut.sum())

    @property
    def num_begun_later(self) -> int:
        """How many utterances lost some tokens at their beginning."""
        return 0 if self.skips is None else int(np.count_nonzero(self.skips))

    @property
    def num_without_prompt(self) -> int:
        """How many utterances lost all of a prompt to the reply behind it."""
        if self.skips is None:
            return 0
        first = self.columns.tokens[self.columns.offsets[self.rows] + self.skips]  # (U,)
        is_reply = np.array([name == REPLY for name in self.columns.token_names])
        return int((is_reply[first] & (self.skips > 0)).sum())

    def batch(self, indices: Indices) -> Batch:
        """Return the utterances at `indices`, padded to the longest of them."""
        index = np.asarray(indices, dtype=np.int64)
        rows, lengths = self.rows[index], self.lengths[index].astype(np.int32)  # (M,) each
        longest = int(lengths.max()) if len(index) else 0
        starts = self.columns.offsets[rows]  # (M,)
        if self.skips is not None:
            starts = starts + self.skips[index]
        places, is_token = gather(starts, lengths, longest)
        slots = np.where(is_token, self.slot_ids[self.columns.tags[places]], 0)  # (M, T)
        intents = self.intent_ids[self.columns.intents[rows]]  # (M,)
        read = self.table.inputs(self.columns.tokens[places], is_token)
        inputs: Inputs = read if self.states is None else self.states.inputs(index, read)
        labels = slots.clip(min=0), intents.clip(min=0)
        return Batch(inputs, lengths, *labels, index, self.is_cut[index])


def evaluation_batches(
    corpus: EncodedCorpus, batch_size: int, *, rank: int = 0, num_workers: int = 1
) -> Iterator[Batch]:
    """Yield a worker's share of all utterances, in batches of similar size, smallest first."""
    order = np.argsort(corpus.sizes, kind="stable").astype(np.int32)
    for start in range(rank * batch_size, len(order), num_workers * batch_size):
        yield corpus.batch(order[start : start + batch_size])


def encode(
    utterances: Sequence[Utterance],
    vocabulary: Vocabulary,
    *,
    max_tokens: int = MAX_TOKENS,
    max_characters: int = MAX_CHARACTERS,
    max_pieces: int = MAX_PIECES,
    like: Optional[EncodedCorpus] = None,
    is_continued: bool = False,
) -> EncodedCorpus:
    """Encode utterances as words and characters, or as word pieces, as the vocabulary decides.

    Beyond `max_tokens`, and for pieces beyond `max_pieces` with [CLS], [SEP] and the template,
    tokens are cut off (their slots count as missed); a first token that alone is longer loses its
    last pieces. A prompt loses its beginning, so that there is room for its reply.

    Args:
        max_characters: further characters of a token are cut off (words only).
        like: a corpus encoded with the same settings, whose table is reused if it belongs to the
            same stored corpus.
        is_continued: they will be continued, and so lose their beginnings in place of their ends.
    """
    columns, rows = numbered(utterances)
    table: Table
    if like is not None and like.columns is columns:
        table = like.table
    elif vocabulary.tokenizer is None:
        table = WordTable.of(columns.token_names, vocabulary, max_characters)
    else:
        table = PieceTable.of(
            columns.token_names,
            vocabulary.tokenizer,
            max_pieces=max_pieces,
            template=vocabulary.template,
        )
    skips = _skips(columns, rows, table, max_tokens, is_continued=is_continued)
    lengths, sizes, is_cut = _lengths(columns, rows, table, max_tokens, skips)
    intent_ids = np.array([vocabulary.intent_id(i) for i in columns.intent_names], np.int32)
    slot_ids = np.array([vocabulary.slot_id(tag) for tag in columns.tag_names], np.int32)
    return EncodedCorpus(columns, rows, lengths, sizes, intent_ids, slot_ids, table, is_cut, skips)


def _skips(
    columns: Columns, rows: np.ndarray, table: Table, max_tokens: int, *, is_continued: bool
) -> Optional[np.ndarray]:
    """Count the first tokens of each prompt that are in the way of what comes behind it, (U,)."""
    if REPLY not in columns.token_names and not is_continued:
        return None
    reply = [place for place, name in enumerate(columns.token_names) if name == REPLY]  # or none
    skips = np.zeros(len(rows), np.int64)  # (U,)
    for chunk in chunks(len(rows)):
        starts, spoken = columns.spans(rows[chunk])  # (rows,)
        found, begins = gathered(columns.tokens, starts, spoken)  # (n,), (rows,)
        owner = np.repeat(np.arange(len(spoken)), spoken)  # (n,)
        place = np.arange(len(found)) - begins[owner]  # (n,), of a token in its utterance
        fits = spoken[owner] - place <= max_tokens  # (n,), the tokens from here on
        if isinstance(table, PieceTable):
            before = np.concatenate([[0], np.cumsum(table.counts[found])])  # (n + 1,)
            fits &= before[begins + spoken][owner] - before[:-1] <= table.room
        at = spoken.astype(np.int64) * is_continued  # (rows,), up to where each may lose tokens
        if not is_continued:  # only those of its prompt
            hits = np.flatnonzero(np.isin(found, reply))[::-1]  # the first of each comes last
            at[owner[hits]] = place[hits]
        skips[chunk] = np.minimum(np.bincount(owner, ~fits, len(spoken)), at)
        columns.release_pages()
    return skips if skips.any() else None


def _lengths(
    columns: Columns, rows: np.ndarray, table: Table, max_tokens: int, skips: Optional[np.ndarray]
) -> Tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Count the tokens that each utterance keeps, and their pieces; tell which are cut, (U,)."""
    # Of −n − 1 it is a signed type, which holds n too.
    lengths = np.empty(len(rows), np.min_scalar_type(-max_tokens - 1))
    sizes, is_cut = lengths, np.empty(len(rows), bool)
    if isinstance(table, PieceTable):
        sizes = np.empty(len(rows), np.min_scalar_type(-table.room - 1))
    for chunk in chunks(len(rows)):
        starts, spoken = columns.spans(rows[chunk])  # (rows,)
        skipped = 0 if skips is None else skips[chunk]
        kept = (spoken - skipped).clip(max=max_tokens)  # (rows,)
        if isinstance(table, PieceTable):
            found, begins = gathered(columns.tokens, starts + skipped, kept)  # (n,), (rows,)
            before = np.concatenate([[0], np.cumsum(table.counts[found])])  # (n + 1,), pieces
            owner = np.repeat(np.arange(len(kept)), kept)  # (n,)
            fits = before[1:] - before[begins][owner] <= table.room  # (n,), true up to some token
            kept = np.bincount(owner, fits, len(kept)).astype(np.int64)  # (rows,)
            sizes[chunk] = before[begins + kept] - before[begins]
        lengths[chunk] = kept
        is_cut[chunk] = spoken - skipped > kept
        columns.release_pages()
    return lengths, sizes, is_cut
