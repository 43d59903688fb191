"""A0: the noise that N real workers release, with zero gradients."""

import numpy as np
import pytest
from support.workers import run_workers

SIZE, STEPS = 150_000, 2  # coordinates a layer
SCALES, CLIP, Z = (1.0, 0.5), 0.5, 0.8
ERRORS = 6.5  # standard errors: keys are the operating system's; one of 1e10 lies beyond


def release_noise(variant, num_steps, size, scales, clip, z, per_worker=1):
    """Runs on a worker: steps with zero gradients; the aggregates, and what it sent itself."""
    import mxnet as mx
    from mxnet import gluon

    from edp_mx.accounting.decay import Decay
    from edp_mx.accounting.plan import Plan
    from edp_mx.accounting.release import Release
    from edp_mx.privacy.flat import FlatGradients
    from edp_mx.privacy.layers import Layer
    from edp_mx.privacy.mechanism import Mechanism
    from edp_mx.privacy.noise import NoiseStream, refuse_equal
    from edp_mx.privacy.norm_clipping import LoopClipping
    from edp_mx.privacy.trainer import PrivateTrainer
    from edp_mx.runtime import distributed

    class Recording(Mechanism):
        """Keeps what left the worker."""

        def privatise(self, chunks, *, epoch):
            released = super().privatise(chunks, epoch=epoch)
            sent.append(flat.gradients()[:1000].copy())
            return released

    sent, released = [], []
    workers = distributed.start()
    layers = []
    for k in range(len(scales)):
        parameter = gluon.Parameter(f"layer{k}_weight", shape=(size,))
        parameter.initialize(mx.init.Zero())
        layers.append(Layer(f"layer{k}", (parameter,)))
    flat = FlatGradients(layers)
    noise = NoiseStream.from_operating_system()
    refuse_equal(workers.gather(noise.fingerprint))
    release = Release(
        unit="micro_batch",
        micro_batches_per_worker=per_worker,
        num_workers=workers.size,
        micro_batch_size=4,
        max_grad_norm=clip,
        layer_scales=scales,
        adjacency="replace_one",
        variant=variant,
    )
    mechanism = Recording(
        plan=Plan(release, noise_multiplier=z, decay=Decay(), epochs=1, delta=1e-5),
        clipping=LoopClipping(flat=flat, max_grad_norm=clip, layer_scales=scales),
        noise=noise,
    )
    trainer = PrivateTrainer(flat=flat, optimizer="sgd", optimizer_params={"learning_rate": 1.0})

    def nothing():
        return mx.nd.add_n(*(0 * layer.parameters[0].data().sum() for layer in layers))

    for _ in range(num_steps):
        before = [layer.parameters[0].data().asnumpy() for layer in layers]
        trainer.step_private(mechanism.privatise([nothing] * per_worker, epoch=0))
        after = [layer.parameters[0].data().asnumpy() for layer in layers]
        released.append([x - y for x, y in zip(before, after)])
    return released, sent


@pytest.mark.parametrize("variant", ["published", "calibrated"])
@pytest.mark.parametrize(
    ("num_workers", "k"),
    [(1, 1), (2, 1), (2, 4), (3, 1), pytest.param(8, 1, marks=pytest.mark.slow)],
)
def test_the_released_noise_is_what_the_accountant_is_told(num_workers, k, variant):
    arguments = (variant, STEPS, SIZE, SCALES, CLIP, Z, k)
    results = run_workers(release_noise, num_workers, *arguments)
    released = results[0][0]
    for other, _ in results[1:]:
        for step, same in zip(released, other):
            for layer, again in zip(step, same):
                assert (layer == again).all(), "the workers' weights have drifted apart"

    for step in released:
        for scale, layer in zip(SCALES, step):
            if variant == "published":
                expected = CLIP * Z / (num_workers * k) ** 1.5
            else:
                expected = 2 * CLIP * Z * scale / (num_workers * k)
            ratio = layer.astype(np.float64).std() / expected
            # ERRORS standard errors accept the right scale and reject 2/3, 3/2 and √N of it
            assert abs(ratio - 1) < ERRORS / (2 * SIZE) ** 0.5
            assert abs(layer.mean()) < ERRORS * expected / SIZE**0.5
    assert_uncorrelated(released[0][0], released[1][0])  # from step to step
    assert_uncorrelated(released[0][0], released[0][1])  # from layer to layer
    for rank, (_, sent) in enumerate(results):  # from worker to worker
        for _, others in results[:rank]:
            assert_uncorrelated(sent[0], others[0])


def test_two_fresh_runs_draw_different_noise():
    arguments = ("published", 1, 1000, SCALES, CLIP, Z)
    first, second = (run_workers(release_noise, 2, *arguments, is_fresh=True) for _ in range(2))
    for (one, _), (other, _) in zip(first, second):
        assert_uncorrelated(one[0][0], other[0][0])
        assert (one[0][0] == other[0][0]).mean() < 0.01  # by chance one in 1e8


def assert_uncorrelated(one, other):
    """|r| below so many standard errors."""
    correlation = np.corrcoef(one.astype(np.float64), other.astype(np.float64))[0, 1]
    assert abs(correlation) < ERRORS / len(one) ** 0.5
