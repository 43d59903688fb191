"""A corpus as numbers: flat arrays, and one table of what each distinct token becomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterator, Optional, Sequence, Tuple, Union

import numpy as np

from edp_mx.data.batching import Batch
from edp_mx.data.columns import Columns, chunks, gathered
from edp_mx.data.stored import StoredUtterances
from edp_mx.data.token_tables import PieceTable, WordTable, gather
from edp_mx.data.utterance import Utterance
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.errors import UserError

Indices = Union[Sequence[int], np.ndarray]
MAX_TOKENS = 64
MAX_CHARACTERS = 32
MAX_PIECES = 128


Table = Union[WordTable, PieceTable]


@dataclass(frozen=True, eq=False)
class EncodedCorpus:
    """Utterances as ids, stored without padding.

    Attributes:
        columns: the text of the whole corpus; what lies in files stays there until a batch asks
            for it.
        rows: which of its utterances these are.
        table: what each distinct token becomes.
        num_cut: how many utterances were longer than the maximum and lost their ends.

    Shapes:
        U is the number of utterances. rows (U,); lengths (U,), how many tokens each has, cut to the
        maximum, in the smallest signed type; slot_ids (tags,) and intent_ids (intents,), what each
        tag and each intent of `columns` becomes.

    Edge cases: a label that the vocabulary lacks is −1 here. Where the corpus lies in files, only
    `lengths` and the table take memory of this process: mostly a byte an utterance.
    """

    columns: Columns
    rows: np.ndarray
    lengths: np.ndarray
    intent_ids: np.ndarray
    slot_ids: np.ndarray
    table: Table
    num_cut: int

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def intents(self) -> np.ndarray:
        """(U,) int32, made anew each time."""
        return self.intent_ids[self.columns.intents[self.rows]]

    def batch(self, indices: Indices, *, pad_to: Optional[int] = None) -> Batch:
        """The utterances at `indices`, padded to the longest of them.

        Args:
            pad_to: pad to this many tokens instead.

        Raises:
            UserError: `pad_to` is shorter than one of them.

        Shapes: see `Batch`; C is the longest token's length, at least 1.
        """
        index = np.asarray(indices, dtype=np.int64)
        rows, lengths = self.rows[index], self.lengths[index].astype(np.int32)  # (M,) each
        longest = int(lengths.max()) if len(index) else 0
        if pad_to is not None and pad_to < longest:
            raise UserError(f"cannot pad to {pad_to} tokens: an utterance has {longest}")
        places, is_token = gather(
            self.columns.offsets[rows], lengths, longest if pad_to is None else pad_to
        )
        slots = np.where(is_token, self.slot_ids[self.columns.tags[places]], 0)  # (M, T)
        intents = self.intent_ids[self.columns.intents[rows]]  # (M,)
        return Batch(
            inputs=self.table.inputs(self.columns.tokens[places], is_token),
            lengths=lengths,
            slots=slots.clip(min=0),
            intents=intents.clip(min=0),
            indices=index,
            is_known=(slots >= 0).all(axis=1) & (intents >= 0),
        )


def evaluation_batches(
    corpus: EncodedCorpus, batch_size: int, *, rank: int = 0, num_workers: int = 1
) -> Iterator[Batch]:
    """All utterances once, those of similar length together, the shortest first.

    Args:
        rank, num_workers: which of the workers' shares; together they are the whole corpus.

    Raises:
        UserError: a batch size below 1.
    """
    if batch_size < 1:
        raise UserError(f"the batch size of an evaluation must be ≥ 1, not {batch_size}")
    order = _by_length(corpus.lengths)
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
) -> EncodedCorpus:
    """Encodes utterances, as words and characters or as word pieces, as the vocabulary has them.

    Args:
        max_tokens: what an utterance has beyond these is cut off (its slots then count as missed).
        max_characters: what a token has beyond these is cut off (words only).
        max_pieces: tokens whose pieces do not fit into these, with [CLS] and [SEP], are cut off;
            a first token that alone is longer loses its last pieces (word pieces only).
        like: encoded with the same settings; its table is taken where it is of the same stored
            corpus.

    Raises:
        UserError: a maximum that leaves no room for a token.

    Edge cases: unknown words and characters are `UNK`, labels that the vocabulary lacks −1.
    """
    least = {"max_tokens": (max_tokens, 1), "max_characters": (max_characters, 1)}
    least["max_pieces"] = (max_pieces, 3)
    for name, (value, minimum) in least.items():
        if value < minimum:
            raise UserError(f"data.{name} must be ≥ {minimum}, not {value}")
    if isinstance(utterances, StoredUtterances):
        columns, rows = utterances.columns, utterances.rows
    else:
        columns, rows = Columns.of(utterances), np.arange(len(utterances))
    table: Table
    if like is not None and like.columns is columns:
        table = like.table
    elif vocabulary.tokenizer is None:
        table = WordTable.of(columns.token_names, vocabulary, max_characters)
    else:
        table = PieceTable.of(columns.token_names, vocabulary.tokenizer, max_pieces - 2)
    lengths, num_cut = _lengths(columns, rows, table, max_tokens, max_pieces - 2)
    intent_ids = [vocabulary.intent_id(intent) for intent in columns.intent_names]
    return EncodedCorpus(
        columns=columns,
        rows=rows,
        lengths=lengths,
        intent_ids=np.array(intent_ids, np.int32),
        slot_ids=np.array([vocabulary.slot_id(tag) for tag in columns.tag_names], np.int32),
        table=table,
        num_cut=num_cut,
    )


def _lengths(
    columns: Columns, rows: np.ndarray, table: Table, max_tokens: int, room: int
) -> Tuple[np.ndarray, int]:
    """How many tokens of each utterance are kept, (U,), and how many utterances lost some.

    Args:
        room: for word pieces, which words do not need.
    """
    lengths = np.empty(len(rows), np.min_scalar_type(-max_tokens))
    num_cut = 0
    for chunk in chunks(len(rows)):
        starts, spoken = columns.spans(rows[chunk])  # (rows,)
        kept = spoken.clip(max=max_tokens)  # (rows,)
        if isinstance(table, PieceTable):
            kept = _that_fit(columns.tokens, table.counts, starts, kept, room)
        lengths[chunk] = kept
        num_cut += int((spoken > kept).sum())
        columns.release_pages()
    return lengths, num_cut


def _that_fit(
    tokens: np.ndarray, counts: np.ndarray, starts: np.ndarray, lengths: np.ndarray, room: int
) -> np.ndarray:
    """How many tokens of some utterances fit with all their pieces, (rows,).

    Shapes: tokens (S,), places in counts (F,), their pieces; starts, lengths (rows,).
    """
    found, begins = gathered(tokens, starts, lengths)
    ends = np.cumsum(counts[found])  # (n,)
    before = np.concatenate([[0], ends])[begins]  # (rows,)
    fits = ends - np.repeat(before, lengths) <= room  # (n,), true up to some token
    total = np.concatenate([[0], np.cumsum(fits)])  # (n + 1,)
    return total[begins + lengths] - total[begins]


def _by_length(lengths: np.ndarray) -> np.ndarray:
    """`argsort(lengths, kind="stable")` as int32, without the two int64 vectors that it takes.

    Shapes: lengths (U,), whole numbers of few different values.
    """
    order, filled = np.empty(len(lengths), np.int32), 0
    for length in np.unique(lengths):
        places = np.flatnonzero(lengths == length)
        order[filled : filled + len(places)] = places
        filled += len(places)
    return order
