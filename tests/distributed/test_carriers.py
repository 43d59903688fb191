"""Two workers with other utterances and noise have the same carriers and weights after steps."""

import mxnet as mx
import numpy as np
from support.examples import plan_with, release_with
from support.models import random_batch, tiny_bert
from support.workers import run_workers

from edp_mx.dp.privacy.flat import FlatGradients
from edp_mx.dp.privacy.layers import layers_of
from edp_mx.dp.privacy.mechanism import Mechanism
from edp_mx.dp.privacy.noise import NoiseStream
from edp_mx.dp.privacy.norm_clipping import LoopClipping
from edp_mx.models.rgp import carried_weights
from edp_mx.models.rgp_trainer import CarriedTrainer
from edp_mx.runtime.distributed import start

STEPS, SIZE = 3, 2


def train(optimizer):
    """Runs on a worker: its weights before and after some private steps."""
    workers = start()
    model = tiny_bert(trained="rgp", rgp_rank=2)
    carried = carried_weights(model.encoder)
    flat = FlatGradients(layers_of(model))
    norms = {"max_grad_norm": 1.0, "layer_scales": (1.0,) * len(flat.layers)}
    release = release_with(num_workers=workers.size, micro_batch_size=SIZE, **norms)
    mechanism = Mechanism(
        plan=plan_with(release, z=0.5),
        clipping=LoopClipping(flat=flat, release=release),
        noise=NoiseStream.from_operating_system(),
    )
    trainer = CarriedTrainer(
        flat=flat, carried=carried, workers=workers,
        optimizer=optimizer, optimizer_params={"learning_rate": 0.1},
    )  # fmt: skip
    generator = np.random.default_rng(workers.rank)

    def values():
        mx.nd.waitall()
        return {name: p.data().asnumpy() for name, p in model.collect_params().items()}

    seen = [values()]
    for _ in range(STEPS):
        batches = [random_batch(generator, [3], "bert") for _ in range(SIZE)]
        losses = [lambda batch=batch: model.loss(batch) for batch in batches]
        trainer.step_private(mechanism.privatise(losses, epoch=0))
        seen.append(values())
    return seen


def test_all_workers_have_the_same_carriers_and_weights():
    for optimizer in ("sgd", "adam"):
        first, second = run_workers(train, 2, optimizer)
        for step, (ours, theirs) in enumerate(zip(first, second)):
            for name, values in ours.items():
                np.testing.assert_array_equal(values, theirs[name], err_msg=f"{step} {name}")
        assert any((first[0][name] != first[-1][name]).any() for name in first[0])
