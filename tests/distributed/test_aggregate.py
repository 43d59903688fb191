"""What N real workers release, read from the updated weights, against Algorithm 1 in NumPy."""

import numpy as np
import pytest
from support import algorithm1
from support.workers import run_workers

STEPS, SIZE, WIDTH, HIDDEN = 3, 4, 6, 5
SCALES = (1.0, 0.25)
CLIP = 0.05  # some micro-batches are clipped, some are not (asserted below)


def gradients_by_hand(weights, inputs, targets):
    """∇ of the mean over examples of ½‖W₂ tanh(W₁x + b₁) + b₂ − y‖², in float64."""
    (w1, b1), (w2, b2) = weights
    hidden = np.tanh(inputs @ w1.T + b1)  # (M, H)
    error = (hidden @ w2.T + b2 - targets) / len(inputs)  # (M, 1)
    back = (error @ w2) * (1 - hidden**2)  # (M, H)
    return [[back.T @ inputs, back.sum(0)], [error.T @ hidden, error.sum(0)]]


def train_worker(weights, batches, scales, clip, variant, z, k=1):
    """Runs on a worker: the real trainer over a real network; returns its weights by step.

    `batches`: for each step those of all micro-batches, k of them the worker's own.
    """
    import mxnet as mx
    from mxnet.gluon import nn

    from edp_mx.accounting.decay import Decay
    from edp_mx.accounting.plan import Plan
    from edp_mx.accounting.release import Release
    from edp_mx.privacy.flat import FlatGradients
    from edp_mx.privacy.layers import layers_of
    from edp_mx.privacy.mechanism import Mechanism
    from edp_mx.privacy.noise import NoiseStream
    from edp_mx.privacy.norm_clipping import LoopClipping
    from edp_mx.privacy.trainer import PrivateTrainer
    from edp_mx.runtime import distributed

    workers = distributed.start()
    net = nn.HybridSequential(prefix="net_")
    net.add(nn.Dense(5, in_units=6, activation="tanh"), nn.Dense(1, in_units=5))
    net.initialize()
    for block, (weight, bias) in zip(net, weights):
        block.weight.set_data(weight)
        block.bias.set_data(bias)
    net.hybridize()
    flat = FlatGradients(layers_of(net))
    release = Release(
        unit="micro_batch",
        num_workers=workers.size,
        micro_batches_per_worker=k,
        micro_batch_size=len(batches[0][0][0]),
        max_grad_norm=clip,
        layer_scales=scales,
        adjacency="replace_one",
        variant=variant,
    )
    mechanism = Mechanism(
        plan=Plan(release, noise_multiplier=z, decay=Decay(), epochs=1, delta=1e-5),
        clipping=LoopClipping(flat=flat, max_grad_norm=clip, layer_scales=scales),
        noise=NoiseStream.from_operating_system(),
    )
    trainer = PrivateTrainer(flat=flat, optimizer="sgd", optimizer_params={"learning_rate": 1.0})

    def mean_loss(batch):
        inputs, targets = (mx.nd.array(x) for x in batch)
        return (0.5 * (net(inputs) - targets).square().sum() / len(inputs)).reshape((1,))

    seen = []
    for step in batches:
        mine = step[workers.rank * k : (workers.rank + 1) * k]
        released = mechanism.privatise(
            [lambda batch=batch: mean_loss(batch) for batch in mine], epoch=0
        )
        trainer.step_private(released)
        seen.append([[p.data().asnumpy() for p in layer.parameters] for layer in flat.layers])
    return seen, mechanism.clipping.take_statistics().clipped


@pytest.mark.parametrize("variant", ["published", "calibrated"])
@pytest.mark.parametrize(
    ("num_workers", "k"),
    [(1, 1), (1, 8), (2, 1), (2, 4), (3, 1), pytest.param(8, 1, marks=pytest.mark.slow)],
)
def test_the_aggregate_without_noise_is_algorithm_1(num_workers, k, variant, generator):
    """Of N = workers · k micro-batches, whoever has them."""
    weights = [
        (generator.normal(size=(HIDDEN, WIDTH)) / 3, np.zeros(HIDDEN)),
        (generator.normal(size=(1, HIDDEN)) / 3, np.zeros(1)),
    ]
    batches = [
        [
            (
                generator.normal(size=(SIZE, WIDTH)),
                generator.normal(size=(SIZE, 1)) * (0.01 if worker % 2 else 3.0),
            )
            for worker in range(num_workers * k)
        ]
        for _ in range(STEPS)
    ]
    results = run_workers(
        train_worker, num_workers, weights, batches, SCALES, CLIP, variant, 0.0, k
    )

    assert sum(clipped for _, clipped in results) > 0
    for step in range(STEPS):
        zero = [[np.zeros(np.shape(t)) for t in layer] for layer in weights]
        sent = [
            algorithm1.worker_step(
                gradients_by_hand(weights, *batches[step][worker]),
                scales=SCALES,
                max_grad_norm=CLIP,
                noise_stddevs=[0, 0],
                noise=zero,
            )
            for worker in range(num_workers * k)
        ]
        released = algorithm1.aggregate(sent)
        expected = [
            [w - g for w, g in zip(layer, change)] for layer, change in zip(weights, released)
        ]
        for seen, _ in results:  # every worker has the same weights
            for layer, expected_layer in zip(seen[step], expected):
                for tensor, wanted in zip(layer, expected_layer):
                    np.testing.assert_allclose(tensor, wanted, rtol=1e-6, atol=1e-6)
        weights = [[tensor.astype(np.float64) for tensor in layer] for layer in results[0][0][step]]
