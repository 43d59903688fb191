"""A model of a task: an encoder and the task's heads."""

from __future__ import annotations

from typing import (
    Any,
    Callable,
    Dict,
    Iterable,
    Iterator,
    NamedTuple,
    Optional,
    Protocol,
    Sequence,
    Tuple,
    TypeVar,
)

import mxnet as mx
import numpy as np
from mxnet import gluon
from mxnet.gluon import nn
from scipy.special import softmax

from edp_mx.data.batching import Batch
from edp_mx.data.utterance import Utterance
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.models.encoder import Encoder
from edp_mx.models.forward_backward import Chain
from edp_mx.models.initialization import Rule, initial_values, initialize
from edp_mx.models.quick import quicken
from edp_mx.runtime.limits import MOST_AT_ONCE
from edp_mx.runtime.settings import Settings


class Outputs(NamedTuple):
    """The network's outputs for a batch; values at padding are meaningless.

    A model without tags has a single one, K = 1.

    Shapes: emissions (N, T, K), label_scores (N, I).
    """

    batch: Batch
    emissions: np.ndarray
    label_scores: np.ndarray


class Answer(Protocol):
    """The answer of a model to one utterance."""

    def to_dict(self) -> Dict[str, Any]:
        """Return it for programs."""

    def describe(self) -> str:
        """Return it for people, on several lines."""

    def line(self) -> str:
        """Return it for people, on one line."""


class TaskModel(gluon.Block):
    """An encoder, and heads that read its outputs.

    Attributes:
        label_head: scores the labels of an utterance; None where there are no labels.
        head_values: draws the first values of the heads.
        reads_tokens: whether a head reads the states of tokens.
        reads_stored_states: whether an utterance is the same at each step, so that the outputs of
            frozen layers can be stored.
        why_no_ghost: why ghost clipping cannot follow the loss; empty where it can.
        answering: how it answers; None where nothing can be set about that.
        heard: is given the answer to a single utterance while it is written, as far as it is; a
            model that answers at once gives it nothing.
        most_at_once: of how many utterances the loss may be computed at once.

    Guarantee: an example's loss depends on no other example of its batch, except through dropout's
    random draws.
    """

    encoder: Encoder
    label_head: Optional[nn.Dense] = None
    head_values: Rule = staticmethod(initial_values)
    reads_tokens = False
    reads_stored_states = True
    why_no_ghost = ""
    answering: Optional[Settings] = None
    heard: Optional[Callable[[Answer], None]] = None
    most_at_once = MOST_AT_ONCE

    @property
    def heads(self) -> Dict[str, gluon.Block]:
        """The heads, each by the list of a `Vocabulary` that its outputs stand for, or "pieces"."""
        return {"intents": self.label_head}

    @property
    def most_continued(self) -> Optional[int]:
        """How many pieces of a text leave room behind it; None where nothing is written there."""
        return None

    def tensors(self) -> Dict[str, gluon.Parameter]:
        """Return the heads' parameters that a checkpoint has a place for, by its names for them."""
        return {}

    def upon(self: M, encoder: Encoder) -> M:
        """Return a model with the same heads upon another encoder."""
        raise NotImplementedError

    def loss(self, batch: Batch) -> mx.nd.NDArray:
        """Return the loss of each example, (N,)."""
        raise NotImplementedError

    def guesses(self, batches: Iterable[Batch]) -> Iterator[Any]:
        """Yield the predictions for each batch, in a compact form for `Task.fill`."""
        return self.guesses_of(self.outputs(batches))

    def guesses_of(self, outputs: Iterable[Outputs]) -> Iterator[Any]:
        """Yield `guesses`, of a model whose outputs they all follow from."""
        raise NotImplementedError

    def answers(
        self, batches: Iterable[Batch], asked: Sequence[Utterance], vocabulary: Vocabulary
    ) -> Iterator[Tuple[int, Answer]]:
        """Yield the place of each utterance that was asked about, and the answer."""
        raise NotImplementedError

    def chain(self) -> Chain:
        """Return the scores between tags; all 0 for a single tag."""
        return Chain(np.zeros((1, 1)), np.zeros(1), np.zeros(1))

    def forward(self, batch: Batch) -> Tuple[Optional[mx.nd.NDArray], mx.nd.NDArray]:
        """Return emissions, if the model has tags, and label scores. Shapes: (N, T, K), (N, I)."""
        raise NotImplementedError

    def encoded(self, batch: Batch) -> Tuple[mx.nd.NDArray, mx.nd.NDArray]:
        """Return the encoder's outputs. Shapes: (N, T, H), (N, G H)."""
        assert self.label_head is not None
        context = self.label_head.weight.list_ctx()[0]
        return self.encoder(*self.encoder.inputs(batch, context))

    def outputs(self, batches: Iterable[Batch]) -> Iterator[Outputs]:
        """Yield the network's outputs per batch, without dropout and without recording.

        MXNet computes in a thread of its own: the next batch is being computed while the caller
        works on one, and the batch after it is being made.
        """
        started: Optional[Tuple[Batch, Optional[mx.nd.NDArray], mx.nd.NDArray]] = None
        for batch in batches:
            finished = None if started is None else _fetch(*started)
            with mx.autograd.pause(train_mode=False):
                started = (batch, *self(batch))
            if finished is not None:
                yield finished
        if started is not None:
            yield _fetch(*started)


M = TypeVar("M", bound=TaskModel)


def cross_entropy(scores: mx.nd.NDArray, labels: np.ndarray) -> mx.nd.NDArray:
    """Return −log of the true label's probability. Shapes: scores (N, I) · labels (N,) → (N,)."""
    labels = mx.nd.array(labels, ctx=scores.context, dtype="int32")
    return -mx.nd.pick(mx.nd.log_softmax(scores, axis=1), labels, axis=1)


def scores_of_losses(losses: mx.nd.NDArray) -> mx.nd.NDArray:
    """Return scores of two labels, of which the first has the probability e^−loss.

    Shapes: (N,) → (N, 2).
    """
    others = mx.nd.log(1 - mx.nd.exp(-mx.nd.maximum(losses, 1e-6)))  # (N,)
    return mx.nd.stack(-losses, others, axis=1)


def probabilities(scores: np.ndarray) -> np.ndarray:
    """Return the probabilities of labels in float64. Shapes: (N, I) → (N, I)."""
    return softmax(scores.astype(np.float64), axis=1)


def draw_values(model: TaskModel, *, seed: int, context: mx.Context) -> None:
    """Draw the initial weights, the same in every process, and make the model ready to train."""
    initialize(model.encoder, seed=seed, context=context, rule=model.encoder.initial_values)
    for head in model.heads.values():
        initialize(head, seed=seed, context=context, rule=model.head_values)
    quicken(model, context)
    model.hybridize(static_alloc=True)


def _fetch(
    batch: Batch, emissions: Optional[mx.nd.NDArray], label_scores: mx.nd.NDArray
) -> Outputs:
    if emissions is None:
        return Outputs(batch, np.zeros((*batch.slots.shape, 1)), label_scores.asnumpy())
    return Outputs(batch, emissions.asnumpy(), label_scores.asnumpy())
