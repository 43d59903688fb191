"""The training loss: one value an example, no example's value touched by another's."""

from __future__ import annotations

import mxnet as mx
import numpy as np

from edp_mx.models.crf import CRF


def cross_entropy(scores: mx.nd.NDArray, labels: np.ndarray) -> mx.nd.NDArray:
    """−log of the true label's probability. Shapes: scores (N, I) · labels (N,) → (N,)."""
    labels = mx.nd.array(labels, ctx=scores.context, dtype="int32")
    return -mx.nd.pick(mx.nd.log_softmax(scores, axis=1), labels, axis=1)


def intent_slot_loss(
    crf: CRF,
    *,
    emissions: mx.nd.NDArray,
    slots: np.ndarray,
    lengths: np.ndarray,
    intent_scores: mx.nd.NDArray,
    intents: np.ndarray,
) -> mx.nd.NDArray:
    """Slots' negative log-likelihood plus intent's cross entropy.

    Shapes: emissions (N, T, K) · slots (N, T) · lengths (N,) · intent_scores (N, I) · intents (N,)
    → (N,).
    Source: paper, "sum of the CRF loss (NER) and the cross entropy loss (IC)".
    """
    return crf(emissions, slots, lengths) + cross_entropy(intent_scores, intents)
