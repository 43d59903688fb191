"""Ghost clipping tried out on random utterances before a run relies on it."""

from __future__ import annotations

from typing import List, Sequence

import numpy as np

from edp_mx.data.utterance import Utterance
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.dp.privacy.ghost.check import refuse_wrong_on
from edp_mx.dp.privacy.norm_clipping import NormClipping
from edp_mx.runs.prepare import Prepared

LENGTHS = (3, 1, 5, 2, 4, 1)  # of the utterances, which are padded to the longest


def check_ghost(ghost: NormClipping, prepared: Prepared) -> None:
    """Refuse ghost clipping that disagrees with the loop on this very network."""
    encoded = prepared.encode(random_utterances(prepared.vocabulary, LENGTHS, seed=0x6057))
    refuse_wrong_on(ghost, prepared.model.loss, encoded.batch, num_records=len(LENGTHS))


def random_utterances(
    vocabulary: Vocabulary, lengths: Sequence[int], *, seed: int
) -> List[Utterance]:
    """Return random tokens with random labels, which hold nothing of the data."""
    generator = np.random.default_rng(np.random.SeedSequence([seed, 0x9A1B]))
    known = vocabulary.tokenizer.pieces if vocabulary.tokenizer else vocabulary.words
    return [random_utterance(vocabulary, known, length, generator) for length in lengths]


def random_utterance(
    vocabulary: Vocabulary, words: Sequence[str], length: int, generator: np.random.Generator
) -> Utterance:
    """Return tokens drawn from some words, with labels drawn from the vocabulary."""
    return Utterance(
        tokens=tuple(map(str, generator.choice(words, length))),
        slots=tuple(map(str, generator.choice(vocabulary.slots, length))),
        intent=str(generator.choice(vocabulary.intents)),
    )
