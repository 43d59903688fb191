"""Signals of membership in the outputs of a model, on which all attacks are built."""

from __future__ import annotations

from typing import Dict, NamedTuple

import numpy as np
from scipy.special import log_softmax

from edp_mx.models.forward_backward import Chain, marginals, path_scores, token_mask
from edp_mx.models.viterbi import best_two_scores

TOP_INTENTS = 5
TOP_TOKENS = 10
TINY = float(np.finfo(np.float64).tiny)
LEAST_LOSS = 1e-14  # precision of log Z − score in float64


class Signals(NamedTuple):
    """Signals of U utterances, first the ones without the labels, then the ones with them.

    Shapes: intent_top (U, 5), the largest intent probabilities, falling, 0 where there are fewer ·
    slot_top (U, 10), the largest tag marginal of each token, rising, 1 where there are fewer · all
    others (U,).
    Units: losses, scores, log-odds and entropies in nats. `sequence_score` is the best tag path's
    log-probability, `sequence_margin` its distance to the second best. A `margin` is the score
    of the true label minus that of the best other one; `slot_modified_entropy` is the mean over the
    tokens. `loss` is the training loss, and `log_odds` are those of all labels together.
    """

    intent_top: np.ndarray
    slot_top: np.ndarray
    sequence_score: np.ndarray
    sequence_margin: np.ndarray
    intent_loss: np.ndarray
    intent_modified_entropy: np.ndarray
    intent_margin: np.ndarray
    slot_loss: np.ndarray
    slot_modified_entropy: np.ndarray
    slot_margin: np.ndarray
    loss: np.ndarray
    log_odds: np.ndarray


def signals_of(
    *,
    intent_scores: np.ndarray,
    intents: np.ndarray,
    emissions: np.ndarray,
    slots: np.ndarray,
    lengths: np.ndarray,
    chain: Chain,
) -> Signals:
    """Compute all signals of a batch in float64 from the outputs of the model and the true labels.

    Shapes: intent_scores (N, I) · intents (N,) · emissions (N, T, K) · slots (N, T) · lengths (N,).

    Edge cases: leave out utterances with labels that the model does not know, which have no loss.
    With a single intent (or tag sequence) log-odds have their largest value and margins are +inf.
    """
    intent = _intent_signals(np.asarray(intent_scores, np.float64), np.asarray(intents))
    slot = _slot_signals(
        np.asarray(emissions, np.float64), np.asarray(slots), np.asarray(lengths), chain
    )
    loss = intent["intent_loss"] + slot["slot_loss"]  # (N,)
    return Signals(**intent, **slot, loss=loss, log_odds=log_odds_of(loss))


def sorted_top(values: np.ndarray, count: int, *, fill: float) -> np.ndarray:
    """Return the `count` largest of each row (N, V), falling; `fill` where a row has fewer."""
    top = -np.sort(-values, axis=1)[:, :count]  # (N, ≤ count)
    return np.pad(top, ((0, 0), (0, count - top.shape[1])), constant_values=fill)


def log_odds_of(loss: np.ndarray) -> np.ndarray:
    """Return log p − log(1 − p), (N,), for the probability p = e^−loss.

    Edge cases: a loss below 1e-14 counts as 1e-14, which is log-odds of 32.

    Source: Carlini et al. 2022, "Membership Inference Attacks From First Principles", section 4.1.
    """
    loss = np.maximum(loss, LEAST_LOSS)
    return -loss - np.log(-np.expm1(-loss))


def modified_entropy(log_probabilities: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return −(1 − p_y) log p_y − Σ_{i≠y} p_i log(1 − p_i): 0 if right for certain, ∞ if wrong.

    Shapes: (N, V) · (N,) → (N,).

    Source: Song and Mittal 2021, "Systematic Evaluation of Privacy Risks", equation 8.
    """
    rows = np.arange(len(labels))
    probabilities = np.exp(log_probabilities)  # (N, V)
    log_others = np.log(np.maximum(-np.expm1(log_probabilities), TINY))  # (N, V)
    terms = probabilities * log_others
    terms[rows, labels] = 0.0
    true = log_probabilities[rows, labels]  # (N,)
    return np.expm1(true) * true - terms.sum(axis=1)


def _intent_signals(scores: np.ndarray, intents: np.ndarray) -> Dict[str, np.ndarray]:
    rows = np.arange(len(intents))
    log_probabilities = log_softmax(scores, axis=1)  # (N, I)
    probabilities = np.exp(log_probabilities)
    others = scores.copy()
    others[rows, intents] = -np.inf
    true = scores[rows, intents]  # (N,)
    return {
        "intent_top": sorted_top(probabilities, TOP_INTENTS, fill=0.0),
        "intent_loss": -log_probabilities[rows, intents],
        "intent_modified_entropy": modified_entropy(log_probabilities, intents),
        "intent_margin": true - others.max(axis=1),
    }


def _slot_signals(
    emissions: np.ndarray, slots: np.ndarray, lengths: np.ndarray, chain: Chain
) -> Dict[str, np.ndarray]:
    expected = marginals(emissions, lengths, chain)
    mask = token_mask(lengths, emissions.shape[1])  # (N, T)
    surest = np.where(mask, expected.unary.max(axis=2), 1.0)  # (N, T)
    best, second = best_two_scores(emissions, lengths, chain)  # (N,), (N,)
    loss = expected.log_partition - path_scores(emissions, slots, lengths, chain)  # (N,)
    true = expected.log_partition - loss
    is_best = true >= best - 1e-9 * np.maximum(1.0, np.abs(best))
    rows, tokens = np.nonzero(mask)
    log_marginals = np.log(np.maximum(expected.unary[rows, tokens], TINY))  # (S, K)
    by_token = modified_entropy(log_marginals, slots[rows, tokens])  # (S,)
    return {
        "slot_top": -sorted_top(-surest, TOP_TOKENS, fill=-1.0),
        "sequence_score": best - expected.log_partition,
        "sequence_margin": best - second,
        "slot_loss": loss,
        "slot_modified_entropy": np.bincount(rows, by_token, minlength=len(lengths)) / lengths,
        "slot_margin": np.where(is_best, true - second, true - best),
    }
