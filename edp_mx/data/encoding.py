"""A corpus as numbers: flat arrays, and one table of what each distinct token becomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, Iterator, Optional, Sequence, Tuple, Union

import numpy as np

from edp_mx.data.batching import Batch
from edp_mx.data.token_tables import PieceTable, WordTable, gather
from edp_mx.data.utterance import Utterance
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.errors import UserError

Indices = Union[Sequence[int], np.ndarray]
MAX_TOKENS = 64
MAX_CHARACTERS = 32
MAX_PIECES = 128


@dataclass(frozen=True, eq=False)
class EncodedCorpus:
    """Utterances as ids, stored without padding.

    Attributes:
        num_cut: how many utterances were longer than the maximum and lost their ends.

    Shapes:
        S is the number of tokens in the corpus, U of utterances.
        offsets (U + 1,), forms (S,), places in `table`, slots (S,), intents (U,).

    Edge cases: a label that the vocabulary lacks is −1 here.
    """

    offsets: np.ndarray
    forms: np.ndarray
    slots: np.ndarray
    intents: np.ndarray
    table: Union[WordTable, PieceTable]
    num_cut: int

    def __len__(self) -> int:
        return len(self.intents)

    @property
    def lengths(self) -> np.ndarray:
        """(U,) int32: tokens of each utterance."""
        return np.diff(self.offsets).astype(np.int32)

    def batch(self, indices: Indices, *, pad_to: Optional[int] = None) -> Batch:
        """The utterances at `indices`, padded to the longest of them.

        Args:
            pad_to: pad to this many tokens instead.

        Raises:
            UserError: `pad_to` is shorter than one of them.

        Shapes: see `Batch`; C is the longest token's length, at least 1.
        """
        index = np.asarray(indices, dtype=np.int64)
        starts = self.offsets[index]  # (M,)
        lengths = (self.offsets[index + 1] - starts).astype(np.int32)  # (M,)
        longest = int(lengths.max()) if len(index) else 0
        if pad_to is not None and pad_to < longest:
            raise UserError(f"cannot pad to {pad_to} tokens: an utterance has {longest}")
        places, is_token = gather(starts, lengths, longest if pad_to is None else pad_to)
        slots = np.where(is_token, self.slots[places], 0)  # (M, T)
        intents = self.intents[index]  # (M,)
        return Batch(
            inputs=self.table.inputs(self.forms[places], is_token),
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
) -> EncodedCorpus:
    """Encodes utterances, as words and characters or as word pieces, as the vocabulary has them.

    Args:
        max_tokens: what an utterance has beyond these is cut off (its slots then count as missed).
        max_characters: what a token has beyond these is cut off (words only).
        max_pieces: tokens whose pieces do not fit into these, with [CLS] and [SEP], are cut off;
            a first token that alone is longer loses its last pieces (word pieces only).

    Raises:
        UserError: a maximum that leaves no room for a token.

    Edge cases: unknown words and characters are `UNK`, labels that the vocabulary lacks −1.
    """
    least = {"max_tokens": (max_tokens, 1), "max_characters": (max_characters, 1)}
    least["max_pieces"] = (max_pieces, 3)
    for name, (value, minimum) in least.items():
        if value < minimum:
            raise UserError(f"data.{name} must be ≥ {minimum}, not {value}")
    form_of = _forms(utterances, max_tokens)
    lengths = np.array([min(len(u.tokens), max_tokens) for u in utterances], dtype=np.int64)  # (U,)
    tokens = (t for u in utterances for t in u.tokens[:max_tokens])
    forms = np.fromiter((form_of[t] for t in tokens), np.int32, count=int(lengths.sum()))  # (S,)
    slot_of = {tag: vocabulary.slot_id(tag) for u in utterances for tag in u.slots}
    tags = (slot_of[tag] for u in utterances for tag in u.slots[:max_tokens])
    slots = np.fromiter(tags, np.int32, count=len(forms))  # (S,)
    table: Union[WordTable, PieceTable]
    if vocabulary.wordpiece is None:
        table = WordTable.of(form_of, vocabulary, max_characters)
    else:
        table = PieceTable.of(form_of, vocabulary.wordpiece, max_pieces - 2)
        fits, lengths = _that_fit(table.counts[forms], lengths, max_pieces - 2)
        forms, slots = forms[fits], slots[fits]
    return EncodedCorpus(
        offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        forms=forms,
        slots=slots,
        intents=np.array([vocabulary.intent_id(u.intent) for u in utterances], dtype=np.int32),
        table=table,
        num_cut=sum(len(u.tokens) > n for u, n in zip(utterances, lengths)),
    )


def _forms(utterances: Sequence[Utterance], max_tokens: int) -> Dict[str, int]:
    """Distinct tokens, numbered in the order of their appearance."""
    form_of: Dict[str, int] = {}
    for utterance in utterances:
        for token in utterance.tokens[:max_tokens]:
            form_of.setdefault(token, len(form_of))
    return form_of


def _that_fit(counts: np.ndarray, lengths: np.ndarray, room: int) -> Tuple[np.ndarray, np.ndarray]:
    """Which tokens fit with all their pieces, (S,), and how many that leaves of each utterance."""
    utterance = np.repeat(np.arange(len(lengths)), lengths)  # (S,)
    ends = np.cumsum(counts)  # (S,)
    before = np.concatenate([[0], ends])[np.cumsum(lengths) - lengths]  # (U,)
    fits = ends - before[utterance] <= room
    return fits, np.bincount(utterance[fits], minlength=len(lengths))
