"""Small Gluon networks as a user of the library has them, and a private step of them by hand."""

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon
from mxnet.gluon import nn, rnn

from edp_mx.dp import PrivateTraining, make_plan

LOSS = gluon.loss.SoftmaxCrossEntropyLoss()
N, BATCH = 24, 8


class Tagger(gluon.HybridBlock):
    """Tags from a recurrence over token vectors."""

    def __init__(self, bidirectional=False):
        super().__init__(prefix="tagger_")
        with self.name_scope():
            self.embedding = nn.Embedding(10, 5)
            self.lstm = rnn.LSTM(4, layout="NTC", input_size=5, bidirectional=bidirectional)
            self.tags = nn.Dense(3, flatten=False)

    def hybrid_forward(self, F, tokens):
        return self.tags(self.lstm(self.embedding(tokens)))


def mlp():
    net = nn.HybridSequential(prefix="mlp_")
    with net.name_scope():
        net.add(nn.Dense(6, activation="relu"), nn.Dropout(0.0), nn.Dense(3))
    return net


def vectors(generator):
    values = generator.normal(size=(N, 4)).astype("float32")
    return gluon.data.ArrayDataset(values, generator.integers(0, 3, N).astype("float32"))


def sentences(generator):
    tokens = generator.integers(0, 10, (N, 5)).astype("float32")
    return gluon.data.ArrayDataset(tokens, generator.integers(0, 3, (N, 5)).astype("float32"))


NETWORKS = {
    "MLP": (mlp, vectors, "ghost"),
    "LSTM": (Tagger, sentences, "ghost"),
    "two-way LSTM": (lambda: Tagger(bidirectional=True), sentences, "loop"),
}


def ready(net, generator):
    """The network with weights of this generator."""
    mx.random.seed(int(generator.integers(1 << 30)))
    net.initialize(mx.init.Uniform(0.5))
    return net


def training(net, *, users=None, most=99, loss=LOSS, folder=None, batchify_fn=None, **plan):
    """Plain SGD with rate 1, so that a step takes the mean of the clipped gradients away."""
    settings = {"num_examples": N, "epochs": 1, "batch_size": BATCH, "noise_multiplier": 0.0}
    return PrivateTraining(
        net, loss, plan=make_plan(**{**settings, **plan}), optimizer="sgd",
        optimizer_params={"learning_rate": 1.0}, users=users, folder=folder,
        max_examples_per_user=None if users is None else most, batchify_fn=batchify_fn,
    )  # fmt: skip


def units_of(batch):
    """The records of each unit that this worker clips."""
    return [
        [int(r) for r, w in zip(part, weights) if w]
        for chunk in batch.chunks
        for part, weights in zip(
            np.split(chunk.records, chunk.num_units),
            np.split(np.ones(len(chunk.records)) if chunk.weights is None else chunk.weights,
                     chunk.num_units),
        )
    ]  # fmt: skip


def weights_of(net):
    """All weights in a row, float64."""
    return np.concatenate(
        [p.data().asnumpy().ravel().astype(float) for p in net.collect_params().values()]
    )


def clipped_sum_by_hand(net, dataset, units, *, max_grad_norm, divisor=1):
    """Σ over units of their gradient, clipped, one backward pass per example, in float64."""
    total = 0.0
    for records in units:
        gradient = 0.0
        for record in records:
            *inputs, label = (mx.nd.array([value]) for value in dataset[record])
            with autograd.record():
                loss = LOSS(net(*inputs), label)
            loss.backward()
            gradient = gradient + np.concatenate(
                [p.grad().asnumpy().ravel().astype(float) for p in net.collect_params().values()]
            )
        norm = np.sqrt(np.square(gradient).sum()) / divisor
        total = total + gradient / divisor * min(1.0, max_grad_norm / norm)
    return total
