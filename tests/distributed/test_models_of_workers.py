"""N real workers train each model family as Algorithm 1 in one process would."""

import numpy as np
import pytest
from support import algorithm1
from support.models import FAMILIES, loss_and_gradients, random_batch, tiny
from support.workers import run_workers

STEPS, SIZE, RATE, CLIP = 3, 4, 0.5, 1.0  # some micro-batches are clipped, some not (asserted)


def train_worker(family, batches, scale):
    """Runs on a worker: the real trainer over a real model; its weights after the last step."""
    import mxnet as mx
    from support.models import tiny

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
    model = tiny(family)
    flat = FlatGradients(layers_of(model))
    scales = tuple(1.0 if k % 2 else scale for k in range(len(flat.layers)))
    release = Release(
        unit="micro_batch",
        num_workers=workers.size,
        micro_batch_size=SIZE,
        max_grad_norm=CLIP,
        layer_scales=scales,
        adjacency="replace_one",
        variant="published",
    )
    mechanism = Mechanism(
        plan=Plan(release, noise_multiplier=0.0, decay=Decay(), epochs=1, delta=1e-5),
        clipping=LoopClipping(flat=flat, max_grad_norm=CLIP, layer_scales=scales),
        noise=NoiseStream.from_operating_system(),
    )
    trainer = PrivateTrainer(flat=flat, optimizer="sgd", optimizer_params={"learning_rate": RATE})
    for step in batches:
        batch = step[workers.rank]
        trainer.step_private(
            mechanism.privatise([lambda batch=batch: model.loss(batch).sum() / SIZE], epoch=0)
        )
    mx.nd.waitall()
    weights = {name: p.data().asnumpy() for name, p in model.collect_params().items()}
    return weights, mechanism.clipping.take_statistics().clipped


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("num_workers", [2, pytest.param(8, marks=pytest.mark.slow)])
def test_n_workers_are_algorithm_1_in_one_process(num_workers, family, generator):
    from edp_mx.privacy.layers import layers_of

    batches = [
        [
            random_batch(generator, generator.integers(1, 6, SIZE), family)
            for _ in range(num_workers)
        ]
        for _ in range(STEPS)
    ]
    scale = 0.25
    results = run_workers(train_worker, num_workers, family, batches, scale)

    model, clipped = tiny(family), 0
    layers = layers_of(model)
    scales = [1.0 if k % 2 else scale for k in range(len(layers))]
    for step in batches:
        sent = []
        for batch in step:
            _, by_name = loss_and_gradients(model, batch, np.full(SIZE, 1 / SIZE))
            gradient = [[by_name[p.name] for p in layer.parameters] for layer in layers]
            clipped += algorithm1.scaled_norm(gradient, scales) > CLIP
            zeros = [[np.zeros(p.shape) for p in layer.parameters] for layer in layers]
            sent.append(
                algorithm1.worker_step(
                    gradient,
                    scales=scales,
                    max_grad_norm=CLIP,
                    noise_stddevs=[0.0] * len(layers),
                    noise=zeros,
                )
            )
        for layer, released in zip(layers, algorithm1.aggregate(sent)):
            for parameter, value in zip(layer.parameters, released):
                parameter.set_data(parameter.data().asnumpy() - RATE * value)

    assert sum(count for _, count in results) == clipped > 0
    for weights, _ in results:
        for name, parameter in model.collect_params().items():
            np.testing.assert_allclose(
                weights[name], parameter.data().asnumpy(), atol=2e-5, err_msg=name
            )
