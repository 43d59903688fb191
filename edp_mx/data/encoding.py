"""A corpus as numbers: flat arrays, and one table of characters by distinct token."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, Iterator, List, Optional, Sequence, Tuple, Union

import numpy as np

from edp_mx.data.batching import Batch
from edp_mx.data.utterance import Utterance
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.errors import UserError

Indices = Union[Sequence[int], np.ndarray]
MAX_TOKENS = 64
MAX_CHARACTERS = 32


@dataclass(frozen=True, eq=False)
class EncodedCorpus:
    """Utterances as ids, stored without padding.

    Shapes:
        S is the number of tokens in the corpus, F of distinct tokens, U of utterances.
        offsets (U + 1,), words (S,), forms (S,), slots (S,), intents (U,);
        form_offsets (F + 1,), form_characters (characters of all forms,): row f of the table is
        `form_characters[form_offsets[f]:form_offsets[f + 1]]`.

    Edge cases: a label that the vocabulary lacks is −1 here.
    """

    offsets: np.ndarray
    words: np.ndarray
    forms: np.ndarray
    slots: np.ndarray
    intents: np.ndarray
    form_offsets: np.ndarray
    form_characters: np.ndarray

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
        places, is_token = _gather(starts, lengths, longest if pad_to is None else pad_to)
        slots = np.where(is_token, self.slots[places], 0)  # (M, T)
        intents = self.intents[index]  # (M,)
        return Batch(
            words=np.where(is_token, self.words[places], 0),  # (M, T)
            characters=self._characters(self.forms[places], is_token),  # (M, T, C)
            lengths=lengths,
            slots=slots.clip(min=0),
            intents=intents.clip(min=0),
            indices=index,
            is_known=(slots >= 0).all(axis=1) & (intents >= 0),
        )

    def _characters(self, forms: np.ndarray, is_token: np.ndarray) -> np.ndarray:
        """Characters of tokens, (M, T, C), by way of the distinct ones among them."""
        distinct, inverse = np.unique(forms[is_token], return_inverse=True)  # (D,), (tokens,)
        starts = self.form_offsets[distinct]
        lengths = self.form_offsets[distinct + 1] - starts
        places, is_character = _gather(starts, lengths, int(lengths.max(initial=1)))
        table = np.where(is_character, self.form_characters[places], 0)  # (D, C)
        characters = np.zeros((*forms.shape, table.shape[1]), dtype=np.int32)  # (M, T, C)
        characters[is_token] = table[inverse]
        return characters


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
) -> EncodedCorpus:
    """Encodes utterances.

    Args:
        max_tokens: what an utterance has beyond these is cut off (its slots then count as missed).
        max_characters: what a token has beyond these is cut off.

    Raises:
        UserError: a maximum below 1.

    Edge cases: unknown words and characters are `UNK`, labels that the vocabulary lacks −1.
    """
    for name, value in (("max_tokens", max_tokens), ("max_characters", max_characters)):
        if value < 1:
            raise UserError(f"data.{name} must be ≥ 1, not {value}")
    lengths = [min(len(utterance.tokens), max_tokens) for utterance in utterances]
    form_of = _forms(utterances, max_tokens)
    count = sum(lengths)
    tokens = (t for u in utterances for t in u.tokens[:max_tokens])
    forms = np.fromiter((form_of[t] for t in tokens), dtype=np.int32, count=count)  # (S,)
    word_of_form = np.array([vocabulary.word_id(t) for t in form_of], dtype=np.int32)  # (F,)
    slot_of = {tag: vocabulary.slot_id(tag) for u in utterances for tag in u.slots}
    tags = (slot_of[tag] for u in utterances for tag in u.slots[:max_tokens])
    characters = [vocabulary.character_ids(token[:max_characters]) for token in form_of]
    form_offsets, form_characters = _flatten(characters)
    return EncodedCorpus(
        offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        words=word_of_form[forms],
        forms=forms,
        slots=np.fromiter(tags, dtype=np.int32, count=count),
        intents=np.array([vocabulary.intent_id(u.intent) for u in utterances], dtype=np.int32),
        form_offsets=form_offsets,
        form_characters=form_characters,
    )


def _forms(utterances: Sequence[Utterance], max_tokens: int) -> Dict[str, int]:
    """Distinct tokens, numbered in the order of their appearance."""
    form_of: Dict[str, int] = {}
    for utterance in utterances:
        for token in utterance.tokens[:max_tokens]:
            form_of.setdefault(token, len(form_of))
    return form_of


def _flatten(rows: List[List[int]]) -> Tuple[np.ndarray, np.ndarray]:
    """Rows of any length as offsets and one flat array."""
    offsets = np.cumsum([0] + [len(row) for row in rows]).astype(np.int64)
    flat = np.fromiter((i for row in rows for i in row), dtype=np.int32, count=int(offsets[-1]))
    return offsets, flat


def _gather(starts: np.ndarray, lengths: np.ndarray, width: int) -> Tuple[np.ndarray, np.ndarray]:
    """Places in a flat array, (rows, width), and which of them belong to their row."""
    steps = np.arange(width)
    is_inside = steps < lengths[:, None]
    return np.where(is_inside, starts[:, None] + steps, 0), is_inside
