"""A small network whose per-example gradients are known in float64, and DP-SGD around it."""

from typing import NamedTuple

import mxnet as mx
import numpy as np
from mxnet import gluon
from mxnet.gluon import nn
from support import algorithm1, releases

from edp_mx.dp.accounting.decay import Decay
from edp_mx.dp.accounting.plan import Plan
from edp_mx.dp.privacy.flat import FlatGradients
from edp_mx.dp.privacy.layers import layers_of
from edp_mx.dp.privacy.norm_clipping import LoopClipping

WIDTH, HIDDEN = 5, 3
SCALES = (1.0, 0.25)


class SmallNetwork(gluon.HybridBlock):
    """½ ‖W₂ tanh(W₁ x + b₁) + b₂ − y‖², one value an example."""

    def __init__(self, hidden, width):
        super().__init__(prefix="net_")
        with self.name_scope():
            self.first = nn.Dense(hidden, in_units=width, activation="tanh")
            self.second = nn.Dense(1, in_units=hidden)

    def loss(self, batch):
        x, y, _ = batch
        return 0.5 * (self.second(self.first(x)) - y).square().sum(axis=1)  # (n,)


class Rows(NamedTuple):
    """A batch: inputs, targets, and which rows they are."""

    inputs: mx.nd.NDArray
    targets: mx.nd.NDArray
    indices: np.ndarray


class Examples:
    """Stands for an encoded corpus: rows of inputs and targets."""

    def __init__(self, inputs, targets):
        self.inputs, self.targets = inputs, targets
        self.sizes = np.arange(len(inputs)) % 3

    def batch(self, indices):
        assert len(indices)
        rows = (mx.nd.array(values[indices]) for values in (self.inputs, self.targets))
        return Rows(*rows, indices)


def weights_for(generator, *, hidden=HIDDEN, width=WIDTH):
    """(W₁, b₁), (W₂, b₂)."""
    return [
        (generator.normal(size=(hidden, width)) / 2, generator.normal(size=hidden) / 5),
        (generator.normal(size=(1, hidden)), generator.normal(size=1)),
    ]


def network_with(weights):
    """The network and its flat gradients."""
    network = SmallNetwork(*np.shape(weights[0][0]))
    network.initialize()
    for block, (weight, bias) in zip((network.first, network.second), weights):
        block.weight.set_data(mx.nd.array(weight))
        block.bias.set_data(mx.nd.array(bias))
    return network, FlatGradients(layers_of(network))


def gradient_by_hand(weights, x, y):
    """∇ of one example's loss in float64, tensor by tensor."""
    (w1, b1), (w2, b2) = weights
    hidden = np.tanh(w1 @ x + b1)
    error = w2 @ hidden + b2 - y  # (1,)
    back = (error @ w2) * (1 - hidden**2)
    return [[np.outer(back, x), back], [np.outer(error, hidden), error]]


def mean_gradient_by_hand(weights, inputs, targets, *, size=None):
    """∇ of a micro-batch's loss in float64: the sum over its examples by its size."""
    each = [gradient_by_hand(weights, x, y) for x, y in zip(inputs, targets)]
    return [[sum(parts) / (size or len(each)) for parts in zip(*layer)] for layer in zip(*each)]


def clipped_sum_by_hand(gradients, *, scales, max_grad_norm):
    """Σ min(1, C / ‖(g_k/α_k)_k‖) g, tensor by tensor, and the norms; non-finite ones left out."""
    norms = np.array([algorithm1.scaled_norm(gradient, scales) for gradient in gradients])
    clipped = [
        algorithm1.worker_step(gradient, scales=scales, max_grad_norm=max_grad_norm)
        for gradient, norm in zip(gradients, norms)
        if np.isfinite(norm)
    ]
    total = [[sum(parts) for parts in zip(*layer)] for layer in zip(*clipped)]
    return total or None, norms


def tensors_of(flat, array):
    """A flat array cut into the network's tensors, layer by layer."""
    views = flat.views(array)
    return [[views[p.name] for p in layer.parameters] for layer in flat.layers]


def loop_clipping(flat, *, scales=SCALES, max_grad_norm=1.0):
    release = release_with(layer_scales=scales, max_grad_norm=max_grad_norm)
    return LoopClipping(flat=flat, release=release)


def release_with(**changes):
    given = {"unit": "utterance", "num_workers": 1, "micro_batch_size": 4,
             "layer_scales": SCALES, "adjacency": "zero_out"}  # fmt: skip
    return releases.release_with(**{**given, **changes})


def plan_with(release, *, z=0.0, decay=None):
    """A plan of one epoch around a release."""
    return Plan(release, noise_multiplier=z, decay=decay or Decay(), epochs=1, delta=1e-5)


def one_by_one(network, examples, indices):
    """What `clip` wants: the loss of one example after the other."""
    return [lambda i=i: network.loss(examples.batch(np.array([i]))) for i in indices]
