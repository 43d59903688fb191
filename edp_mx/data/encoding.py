"""A corpus as numbers: flat arrays, and one table of what each distinct token becomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterator, Optional, Sequence, Union

import numpy as np

from edp_mx.data.batching import Batch
from edp_mx.data.columns import Columns, chunks
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
        columns: their text; what lies in files stays there until a batch asks for it.
        table: what each distinct token becomes.
        num_cut: how many utterances were longer than the maximum and lost their ends.

    Shapes:
        U is the number of utterances. starts (U,), where each one's tokens begin in `columns`;
        lengths (U,) int32, how many of them there are, cut to the maximum; intents (U,);
        slot_ids (tags,), what each tag of `columns` becomes.

    Edge cases: a label that the vocabulary lacks is −1 here.
    """

    columns: Columns
    starts: np.ndarray
    lengths: np.ndarray
    intents: np.ndarray
    slot_ids: np.ndarray
    table: Table
    num_cut: int

    def __len__(self) -> int:
        return len(self.intents)

    def batch(self, indices: Indices, *, pad_to: Optional[int] = None) -> Batch:
        """The utterances at `indices`, padded to the longest of them.

        Args:
            pad_to: pad to this many tokens instead.

        Raises:
            UserError: `pad_to` is shorter than one of them.

        Shapes: see `Batch`; C is the longest token's length, at least 1.
        """
        index = np.asarray(indices, dtype=np.int64)
        lengths = self.lengths[index]  # (M,)
        longest = int(lengths.max()) if len(index) else 0
        if pad_to is not None and pad_to < longest:
            raise UserError(f"cannot pad to {pad_to} tokens: an utterance has {longest}")
        places, is_token = gather(
            self.starts[index], lengths, longest if pad_to is None else pad_to
        )
        slots = np.where(is_token, self.slot_ids[self.columns.tags[places]], 0)  # (M, T)
        intents = self.intents[index]  # (M,)
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
    order = np.argsort(corpus.lengths, kind="stable")
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
    starts, spoken = columns.spans(rows)  # (U,)
    lengths = spoken.clip(max=max_tokens).astype(np.int32)  # (U,)
    table: Table
    if like is not None and like.columns is columns:
        table = like.table
    elif vocabulary.wordpiece is None:
        table = WordTable.of(columns.token_names, vocabulary, max_characters)
    else:
        table = PieceTable.of(columns.token_names, vocabulary.wordpiece, max_pieces - 2)
    if isinstance(table, PieceTable):
        lengths = _that_fit(columns.tokens, table.counts, starts, lengths, max_pieces - 2)
    intent_ids = [vocabulary.intent_id(intent) for intent in columns.intent_names]
    return EncodedCorpus(
        columns=columns,
        starts=starts,
        lengths=lengths,
        intents=np.array(intent_ids, np.int32)[columns.intents[rows]],
        slot_ids=np.array([vocabulary.slot_id(tag) for tag in columns.tag_names], np.int32),
        table=table,
        num_cut=int((spoken > lengths).sum()),
    )


def _that_fit(
    tokens: np.ndarray, counts: np.ndarray, starts: np.ndarray, lengths: np.ndarray, room: int
) -> np.ndarray:
    """How many tokens of each utterance fit with all their pieces, (U,) int32.

    Shapes: tokens (S,), places in counts (F,), their pieces; starts, lengths (U,).
    """
    fitting = np.empty_like(lengths)
    for rows, found, begins in chunks(tokens, starts, lengths):
        ends = np.cumsum(counts[found])  # (n,)
        before = np.concatenate([[0], ends])[begins]  # (rows,)
        fits = ends - np.repeat(before, lengths[rows]) <= room  # (n,), true up to some token
        total = np.concatenate([[0], np.cumsum(fits)])  # (n + 1,)
        fitting[rows] = total[begins + lengths[rows]] - total[begins]
    return fitting
