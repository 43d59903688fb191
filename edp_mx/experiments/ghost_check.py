"""Ghost clipping tried out on random utterances before a run relies on it."""

from __future__ import annotations

from typing import List

import numpy as np
from mxnet import autograd

from edp_mx.accounting.release import Release
from edp_mx.data.encoding import encode
from edp_mx.data.utterance import Utterance
from edp_mx.experiments.prepare import Prepared
from edp_mx.privacy.clipping import Losses
from edp_mx.privacy.flat import FlatGradients
from edp_mx.privacy.ghost.check import refuse_wrong
from edp_mx.privacy.ghost.clipping import GhostClipping

LENGTHS = (3, 1, 5)  # of the utterances, which are padded to the longest


def check_ghost(
    ghost: GhostClipping, prepared: Prepared, *, flat: FlatGradients, release: Release
) -> None:
    """Holds ghost clipping against the loop on this very network.

    Raises:
        UserError: they disagree.
    """
    encoded = encode(random_utterances(prepared, LENGTHS, seed=0x6057), prepared.vocabulary)

    def losses_of(rows: List[int]) -> Losses:
        batch = encoded.batch(rows)

        def losses():
            with autograd.predict_mode():  # no dropout
                return prepared.model.loss(batch)

        return losses

    everyone, size = list(range(len(LENGTHS))), ghost.chunk_size
    refuse_wrong(
        ghost,
        flat=flat,
        max_grad_norm=release.max_grad_norm,
        layer_scales=release.layer_scales,
        together=[losses_of(everyone[i : i + size]) for i in range(0, len(everyone), size)],
        alone=[losses_of([row]) for row in everyone],
    )


def random_utterances(prepared: Prepared, lengths, *, seed: int) -> List[Utterance]:
    """Random tokens with random labels: there is nothing of the data in them."""
    generator = np.random.default_rng(np.random.SeedSequence([seed, 0x9A1B]))
    vocabulary = prepared.vocabulary
    known = vocabulary.wordpiece.pieces if vocabulary.wordpiece else vocabulary.words
    return [
        Utterance(
            tokens=tuple(map(str, generator.choice(known, length))),
            slots=tuple(map(str, generator.choice(vocabulary.slots, length))),
            intent=str(generator.choice(vocabulary.intents)),
        )
        for length in lengths
    ]
