"""Poisson sampling through real workers: one has nothing to do now and then, all stay in step."""

import numpy as np
import pytest
from support import algorithm1
from support.workers import run_workers

from edp_mx.data.poisson_sampling import PoissonShard
from edp_mx.privacy.noise import NoiseStream

WIDTH, HIDDEN, SIZE = 400, 8, 2.5  # |M| expected, not whole
SHAPES = [[(HIDDEN, WIDTH), (HIDDEN,)], [(1, HIDDEN), (1,)]]
SCALES, CLIP, Z = (1.0, 0.25), 1.0, 0.05
GIVEN = [  # by step, by worker: nobody, one of them, both; one record, more than expected
    ([0, 1, 2, 3, 4], []),
    ([], [30]),
    ([], []),
    ([5], [31, 32, 33]),
    ([0, 6], []),
]


def train_worker(weights, inputs, targets, given, num_epochs, size, scales, clip, z, num_records):
    """Runs on a worker: the real loop and trainer; what it drew, sent and had after each step."""
    import mxnet as mx
    from mxnet import gluon
    from mxnet.gluon import nn
    from support.examples import Rows

    from edp_mx.accounting.decay import Decay
    from edp_mx.accounting.plan import Plan
    from edp_mx.accounting.release import Release
    from edp_mx.data.draws import MicroBatches
    from edp_mx.privacy.flat import FlatGradients
    from edp_mx.privacy.layers import layers_of
    from edp_mx.privacy.mechanism import Mechanism
    from edp_mx.privacy.norm_clipping import LoopClipping
    from edp_mx.privacy.trainer import PrivateTrainer
    from edp_mx.runtime import distributed
    from edp_mx.training.config import TrainingConfig
    from edp_mx.training.loop import TrainingLoop

    class Given(PoissonShard):
        """Draws what it is told to."""

        micro_batch_size = size
        steps_per_epoch = len(given or ())

        def micro_batches(self, epoch):
            return (np.array(step[self.rank], np.int64) for step in given)

    class Model(gluon.HybridBlock):
        def __init__(self):
            super().__init__(prefix="net_")
            with self.name_scope():
                self.first = nn.Dense(8, in_units=400, activation="tanh")
                self.second = nn.Dense(1, in_units=8)

        def loss(self, batch):
            x, y, _ = batch
            return 0.5 * (self.second(self.first(x)) - y).square().sum(axis=1)

    class Corpus:
        lengths = np.ones(len(inputs), int)

        def batch(self, indices):
            assert len(indices)
            return Rows(mx.nd.array(inputs[indices]), mx.nd.array(targets[indices]), indices)

    class Recording(Mechanism):
        """Keeps what left the worker."""

        def privatise(self, chunks, *, epoch):
            released = super().privatise(chunks, epoch=epoch)
            sent.append(flat.gradients().copy())
            return released

    workers = distributed.start()
    model = Model()
    model.initialize()
    for block, (weight, bias) in zip((model.first, model.second), weights):
        block.weight.set_data(weight)
        block.bias.set_data(bias)
    flat = FlatGradients(layers_of(model))
    shard = (PoissonShard if given is None else Given).deal(
        num_records, batch_size=int(size * workers.size), num_workers=workers.size,
        rank=workers.rank, seed=0,
    )  # fmt: skip
    release = Release(
        unit="micro_batch", num_workers=workers.size, micro_batch_size=shard.micro_batch_size,
        max_grad_norm=clip, layer_scales=scales, adjacency="zero_out", variant="calibrated",
        sampler=shard.sampler,
    )  # fmt: skip
    seed = {"seed": 7, "rank": workers.rank}
    noise = NoiseStream.from_operating_system() if given is None else NoiseStream.insecure(**seed)
    mechanism = Recording(
        plan=Plan(release, noise_multiplier=z, decay=Decay(), epochs=1, delta=1e-5),
        clipping=LoopClipping(flat=flat, max_grad_norm=clip, layer_scales=scales),
        noise=noise,
    )
    trainer = PrivateTrainer(flat=flat, optimizer="sgd", optimizer_params={"learning_rate": 1.0})
    sampler = MicroBatches((shard,), num_records, np.empty(0, np.int64))
    sent, drawn, seen = [], [], []

    def watch(batches, epoch, steps):
        for indices in batches:
            drawn.append(indices)
            yield indices
            seen.append([[p.data().asnumpy() for p in layer.parameters] for layer in flat.layers])

    summaries = list(
        TrainingLoop(
            model, Corpus(), sampler, mechanism, trainer, TrainingConfig(epochs=num_epochs),
            workers=workers, permit=lambda _: sampler.steps_per_epoch,
        ).epochs(watch)
    )  # fmt: skip
    segments = [(part.start, part.stop) for part in flat.segments]
    stddevs = release.worker_noise_stddev(z)
    return {"drawn": drawn, "sent": sent, "seen": seen, "summaries": summaries,
            "segments": segments, "stddevs": stddevs,
            "clipped": mechanism.clipping.take_statistics().clipped}  # fmt: skip


def gradients_by_hand(weights, inputs, targets):
    """∇ of the sum over examples of ½‖W₂ tanh(W₁x + b₁) + b₂ − y‖², over SIZE, in float64."""
    (w1, b1), (w2, b2) = weights
    hidden = np.tanh(inputs @ w1.T + b1)  # (M, H)
    error = (hidden @ w2.T + b2 - targets) / SIZE  # (M, 1)
    back = (error @ w2) * (1 - hidden**2)  # (M, H)
    return [[back.T @ inputs, back.sum(0)], [error.T @ hidden, error.sum(0)]]


def noise_by_hand(stream, segments):
    """One worker's standard normal numbers of one step, from its (insecure) stream, by layer."""
    layers = []
    for (start, stop), shapes in zip(segments, SHAPES):
        values, tensors, offset = stream.normal(stop - start), [], 0
        for shape in shapes:
            size = int(np.prod(shape))
            tensors.append(values[offset : offset + size].reshape(shape))
            offset += -(-size // 16) * 16  # each parameter starts on a cache line
        layers.append(tensors)
    return layers


@pytest.fixture
def problem(generator):
    weights = [
        (generator.normal(size=(HIDDEN, WIDTH)) / 20, np.zeros(HIDDEN)),
        (generator.normal(size=(1, HIDDEN)) / 3, np.zeros(1)),
    ]
    inputs = generator.normal(size=(40, WIDTH)) / 5
    targets = 5 * generator.normal(size=(40, 1))
    inputs[30:] /= 100  # small gradients: micro-batches of these alone are not clipped
    targets[30:] /= 500
    return weights, inputs, targets


@pytest.mark.parametrize("z", [0.0, Z])
def test_steps_with_empty_micro_batches_are_algorithm_1(problem, z):
    """Every step of two workers against the one-process simulation, with the noise it should have.

    A noise that an empty micro-batch leaves out, or a divisor that follows the draw, is off here.
    """
    weights, inputs, targets = problem
    results = run_workers(
        train_worker, 2, weights, inputs, targets, GIVEN, 1, SIZE, SCALES, CLIP, z, 40
    )
    streams = [NoiseStream.insecure(seed=7, rank=rank) for rank in range(2)]
    stddevs = algorithm1.calibrated_stddevs(
        max_grad_norm=CLIP, noise_multiplier=z, num_workers=2, scales=SCALES, kappa=2
    )
    for step, draws in enumerate(GIVEN):
        sent = []
        for rank, indices in enumerate(draws):
            noise = noise_by_hand(streams[rank], results[0]["segments"])
            gradient = gradients_by_hand(weights, inputs[indices], targets[indices])
            sent.append(
                algorithm1.worker_step(
                    gradient, scales=SCALES, max_grad_norm=CLIP, noise_stddevs=stddevs, noise=noise
                )
            )
        change = algorithm1.aggregate(sent)
        for result in results:  # every worker has the same weights
            for layer, old, moved in zip(result["seen"][step], weights, change):
                for tensor, before, gradient in zip(layer, old, moved):
                    np.testing.assert_allclose(tensor, before - gradient, rtol=1e-5, atol=1e-6)
        if z == 0 and not any(draws):
            assert not any(tensor.any() for layer in change for tensor in layer)
        weights = [[t.astype(np.float64) for t in layer] for layer in results[0]["seen"][step]]
    for result in results:
        assert len(result["sent"]) == len(result["seen"]) == result["summaries"][0].steps == 5
    drawn = sum(len(indices) > 0 for draws in GIVEN for indices in draws)
    clipped = sum(result["clipped"] for result in results)
    assert 0 < clipped < drawn + (z > 0)  # with noise the later weights are not always the same


def test_workers_that_draw_in_secret_stay_in_step_and_every_empty_step_has_its_noise(problem):
    weights, inputs, targets = problem
    results = run_workers(
        train_worker, 2, weights, inputs, targets, None, 8, 1.0, SCALES, CLIP, Z, 40
    )
    steps = 8 * 20  # n / B = 40 / 2
    empty = [np.array([len(d) == 0 for d in result["drawn"]]) for result in results]
    assert (empty[0] != empty[1]).any()  # one has nothing while the other has something
    for result in results:
        assert len(result["drawn"]) == len(result["sent"]) == len(result["seen"]) == steps
    for one, other in zip(results[0]["seen"], results[1]["seen"]):
        for layer, same in zip(one, other):
            for tensor, again in zip(layer, same):
                assert (tensor == again).all(), "the workers' weights have drifted apart"
    for result, nothing in zip(results, empty):
        assert 0 < nothing.sum() < steps
        alone = np.array(result["sent"])[nothing]  # (empty steps, P): the noise and nothing else
        size = HIDDEN * WIDTH
        ratios = alone[:, :size].astype(np.float64).std(axis=1) / result["stddevs"][0]
        # 6.5 standard errors, of some 120 empty steps at once; rejects 2/3, 3/2 and √N of it
        assert abs(ratios - 1).max() < 6.5 / np.sqrt(2 * size)
        correlation = np.corrcoef(alone[:2, :size])[0, 1]  # two empty steps: noise drawn anew
        assert abs(correlation) < 6.5 / np.sqrt(size)
