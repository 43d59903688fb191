"""A linear-chain CRF as a Gluon block: its loss, its best tags and their probabilities."""

from __future__ import annotations

from typing import List, Optional, Tuple

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon
from mxnet.gluon import nn

from edp_mx.models.forward_backward import MOST_MOVES, Chain, marginals, negative_log_likelihood
from edp_mx.models.viterbi import best_tags


class ChainScores(gluon.HybridBlock):
    """The scores of a chain; the total (N,) of given counts of moves, first and last tags."""

    def __init__(self, num_tags: int, **block: str) -> None:
        super().__init__(**block)
        with self.name_scope():
            self.transitions = self.params.get("transitions", shape=(num_tags, num_tags))
            self.start = self.params.get("start", shape=(num_tags,))
            self.end = self.params.get("end", shape=(num_tags,))

    def hybrid_forward(self, F, moves, firsts, lasts, transitions, start, end):
        total = _product(F, moves, transitions) + _product(F, firsts, start)  # (N, 1)
        return F.reshape(total + _product(F, lasts, end), shape=(-1,))


class CRF(gluon.Block):
    """Scores of transitions (K, K; from, to), of first tags (K,) and of last tags (K,).

    Forward–backward runs in NumPy when the loss is computed and yields every gradient at once. They
    reach autograd as the constants c of a linear function ⟨c, x⟩ whose value is subtracted again.
    So only MXNet's own operators are recorded: no Python callback can deadlock the engine, and head
    gradients, `grad_req="add"` and views of a flat array work as everywhere.

    Args:
        given: scores that are not trained and come on top, such as those that rule moves out.

    Source: Lafferty et al. 2001; as the slot layer, Ma & Hovy 2016, section 2.3.
    """

    def __init__(self, num_tags: int, given: Optional[Chain] = None, **block: str) -> None:
        super().__init__(**block)
        self._given = given or (0.0, 0.0, 0.0)
        with self.name_scope():
            self.scores = ChainScores(num_tags, prefix="")

    @property
    def num_tags(self) -> int:
        return self.scores.transitions.shape[0]

    @property
    def most_at_once(self) -> int:
        """How many utterances take about a gigabyte while their loss is computed: K·K each."""
        return max(1, 4 * MOST_MOVES // self.num_tags**2)

    def chain(self) -> Chain:
        """Return the present scores as float64 NumPy arrays, with the given ones."""
        parameters = (self.scores.transitions, self.scores.start, self.scores.end)
        present = (parameter.data().asnumpy().astype(np.float64) for parameter in parameters)
        return Chain(*map(np.add, present, self._given))

    def forward(self, emissions: mx.nd.NDArray, tags: np.ndarray, lengths: np.ndarray):
        """Return the negative log-likelihood of the true tags, one value per example.

        Shapes: emissions (N, T, K) · tags (N, T) · lengths (N,) → (N,).
        """
        result = negative_log_likelihood(emissions.asnumpy(), tags, lengths, self.chain())
        loss = _constant(result.loss, emissions)  # (N,)
        if not autograd.is_recording():
            return loss
        linear = mx.nd.elemwise_mul(_constant(result.emissions, emissions), emissions)  # (N, T, K)
        linear = linear.sum(axis=(1, 2))  # (N,)
        moves = result.transitions.reshape(len(result.loss), -1)  # (N, K·K)
        counts = (_constant(count, emissions) for count in (moves, result.start, result.end))
        linear = linear + self.scores(*counts)
        return loss + (linear - mx.nd.stop_gradient(linear))

    def decode(
        self, emissions: np.ndarray, lengths: np.ndarray
    ) -> Tuple[List[np.ndarray], List[np.ndarray]]:
        """Find the best tags of each utterance and the probability of each of them.

        Shapes: emissions (N, T, K) · lengths (N,) → N arrays (T_n,) of tags, N of probabilities.
        """
        chain = self.chain()
        tags, _ = best_tags(emissions, lengths, chain)
        unary = marginals(emissions, lengths, chain, has_pairs=False).unary  # (N, T, K)
        confidences = [row[np.arange(len(path)), path] for row, path in zip(unary, tags)]
        return tags, confidences


class SlotHead(gluon.Block):
    """Tag scores (N, T, K) from token states (N, T, H), and the CRF over them."""

    def __init__(
        self, input_size: int, num_slots: int, given: Optional[Chain] = None, **block: str
    ) -> None:
        super().__init__(**block)
        with self.name_scope():
            self.dense = nn.Dense(num_slots, flatten=False, in_units=input_size, prefix="dense_")
            self.crf = CRF(num_slots, given, prefix="crf_")

    def forward(self, states):
        return self.dense(states)


def _constant(values: np.ndarray, like: mx.nd.NDArray) -> mx.nd.NDArray:
    """Copy values to float32 on the device of `like`, outside the recorded graph."""
    return mx.nd.array(values, ctx=like.context, dtype="float32")


def _product(F, counts, scores):
    """Return ⟨counts, scores⟩ per example. Shapes: (N, S), S scores → (N, 1)."""
    weight = F.reshape(scores, shape=(1, -1))
    return F.FullyConnected(counts, weight, no_bias=True, num_hidden=1)
