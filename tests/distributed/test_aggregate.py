"""What N real workers release, read from the updated weights, against Algorithm 1 in NumPy."""

import mxnet as mx
import numpy as np
import pytest
from support import algorithm1
from support.examples import SCALES, WIDTH, mean_gradient_by_hand, network_with, weights_for
from support.models import FAMILIES, loss_and_gradients, random_batch, tiny
from support.private_steps import PrivateSteps
from support.workers import run_workers

from edp_mx.dp.privacy.flat import FlatGradients
from edp_mx.dp.privacy.layers import layers_of

STEPS, SIZE = 3, 4
CLIP = {"network": 3.0, "model": 1.0}  # some micro-batches are clipped, some not (asserted below)
RATE = 0.5


def train_worker(weights, batches, variant, k):
    """Runs on a worker: real steps of a real network; its weights after each of them.

    `batches`: for each step those of all micro-batches, k of them the worker's own.
    """
    network, flat = network_with(weights)
    network.hybridize()
    steps = PrivateSteps(
        flat, unit="micro_batch", micro_batches_per_worker=k, micro_batch_size=SIZE,
        max_grad_norm=CLIP["network"], adjacency="replace_one", variant=variant,
    )  # fmt: skip

    def mean_loss(batch):
        inputs, targets = (mx.nd.array(x) for x in batch)
        return network.loss((inputs, targets, None)).sum().reshape((1,)) / SIZE

    seen = []
    for step in batches:
        mine = step[steps.workers.rank * k :][:k]
        seen.append(steps.take([lambda batch=batch: mean_loss(batch) for batch in mine]))
    return seen, steps.statistics().clipped


@pytest.mark.parametrize("variant", ["published", "calibrated"])
@pytest.mark.parametrize(
    ("num_workers", "k"),
    [(1, 1), (1, 8), (2, 1), (2, 4), *(pytest.param(n, 1, marks=pytest.mark.slow) for n in (3, 8))],
)
def test_the_aggregate_without_noise_is_algorithm_1(num_workers, k, variant, generator):
    """Of N = workers · k micro-batches, whoever has them."""

    def batch(size):
        return generator.normal(size=(SIZE, WIDTH)), generator.normal(size=(SIZE, 1)) * size

    weights = weights_for(generator)
    batches = [
        [batch(0.01 if i % 2 else 30.0) for i in range(num_workers * k)] for _ in range(STEPS)
    ]
    results = run_workers(train_worker, num_workers, weights, batches, variant, k)
    assert sum(clipped for _, clipped in results) > 0
    for step, micro_batches in enumerate(batches):
        released = algorithm1.aggregate(
            algorithm1.worker_step(
                mean_gradient_by_hand(weights, *one), scales=SCALES, max_grad_norm=CLIP["network"]
            )
            for one in micro_batches
        )
        for seen, _ in results:  # every worker has the same weights
            for layer, before, change in zip(seen[step], weights, released):
                for tensor, start, moved in zip(layer, before, change):
                    np.testing.assert_allclose(tensor, start - moved, rtol=1e-6, atol=1e-6)
        weights = [[tensor.astype(np.float64) for tensor in layer] for layer in results[0][0][step]]


def alternating(layers):
    return tuple(1.0 if k % 2 else 0.25 for k in range(len(layers)))


def train_model(family, batches):
    """Runs on a worker: real steps of a real model; its weights after the last of them."""
    model = tiny(family)
    flat = FlatGradients(layers_of(model))
    steps = PrivateSteps(
        flat, unit="micro_batch", micro_batch_size=SIZE, max_grad_norm=CLIP["model"],
        layer_scales=alternating(flat.layers), adjacency="replace_one", variant="published",
        learning_rate=RATE,
    )  # fmt: skip
    for step in batches:
        batch = step[steps.workers.rank]
        steps.take([lambda batch=batch: model.loss(batch).sum() / SIZE])
    weights = {name: p.data().asnumpy() for name, p in model.collect_params().items()}
    return weights, steps.statistics().clipped


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("num_workers", [2, pytest.param(8, marks=pytest.mark.slow)])
def test_n_workers_train_each_family_as_algorithm_1_in_one_process(num_workers, family, generator):
    batches = [
        [
            random_batch(generator, generator.integers(1, 6, SIZE), family)
            for _ in range(num_workers)
        ]
        for _ in range(STEPS)
    ]
    results = run_workers(train_model, num_workers, family, batches)
    model, clipped = tiny(family), 0
    layers = layers_of(model)
    settings = {"scales": alternating(layers), "max_grad_norm": CLIP["model"]}
    for step in batches:
        sent = []
        for batch in step:
            _, by_name = loss_and_gradients(model, batch, np.full(SIZE, 1 / SIZE))
            gradient = [[by_name[p.name] for p in layer.parameters] for layer in layers]
            clipped += algorithm1.scaled_norm(gradient, settings["scales"]) > CLIP["model"]
            sent.append(algorithm1.worker_step(gradient, **settings))
        for layer, released in zip(layers, algorithm1.aggregate(sent)):
            for parameter, value in zip(layer.parameters, released):
                parameter.set_data(parameter.data().asnumpy() - RATE * value)
    assert sum(count for _, count in results) == clipped > 0
    for weights, _ in results:
        for name, parameter in model.collect_params().items():
            np.testing.assert_allclose(
                weights[name], parameter.data().asnumpy(), atol=2e-5, err_msg=name
            )
