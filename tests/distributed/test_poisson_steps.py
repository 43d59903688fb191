"""Poisson steps of real workers: against one process by hand, with noise, and never out of step."""

import numpy as np
from support.draws import GivenDraws, singly
from support.examples import (
    SCALES,
    WIDTH,
    Examples,
    clipped_sum_by_hand,
    gradient_by_hand,
    mean_gradient_by_hand,
    network_with,
    weights_for,
)
from support.normality import normal
from support.private_steps import PrivateSteps
from support.workers import run_workers

from edp_mx.dp.accounting.decay import Decay
from edp_mx.dp.privacy.noise import NoiseStream
from edp_mx.dp.sampling.dealing import deal
from edp_mx.runtime import distributed
from edp_mx.training.config import TrainingConfig
from edp_mx.training.loop import TrainingLoop

CLIP, Z, SIZE = 0.5, 0.3, 2.5  # |M| expected, not whole
DECAY = Decay("linear", 0.5)
GIVEN = [  # by step, by worker: more than expected, none, both none, one, one that is not finite
    ([0, 1, 2, 3, 4], []),
    ([], [30]),
    ([], []),
    ([5], [31, 32, 33]),
    ([0, 6, 19], []),
]
POISONED = 19


def train(steps, network, examples, sampler, epochs):
    """The real loop; the weights after each step, what was drawn, and the steps per epoch."""
    seen, drawn = [], []

    def watch(batches, epoch, count):
        for batch in batches:
            drawn.append(batch)
            yield batch
            seen.append(steps.weights())

    loop = TrainingLoop(
        network, examples, sampler, steps.mechanism, steps.trainer, TrainingConfig(epochs=epochs),
        workers=steps.workers, permit=lambda _, first, most: most,
    )  # fmt: skip
    summaries = list(loop.epochs(watch))
    return seen, drawn, [summary.steps for summary in summaries]


def train_worker(weights, inputs, targets, cases):
    """Runs on a worker: the given draws, case by case."""
    results = []
    for unit, z, adjacency in cases:
        network, flat = network_with(weights)
        rank = distributed.start().rank
        steps = PrivateSteps(
            flat, z=z, decay=DECAY, noise=NoiseStream.insecure(seed=7, rank=rank), unit=unit,
            micro_batch_size=SIZE, max_grad_norm=CLIP, adjacency=adjacency, sampler="poisson",
        )  # fmt: skip
        units = singly if unit == "utterance" else lambda records: [records]
        sampler = GivenDraws(*(units(draws[rank]) for draws in GIVEN), unit=unit, size=SIZE)
        seen, _, counts = train(steps, network, Examples(inputs, targets), sampler, epochs=2)
        segments = [(part.start, part.stop) for part in flat.segments]
        results.append((seen, counts, segments, steps.statistics()))
    return results


def noise_by_hand(stream, segments, shapes):
    """One worker's standard normal numbers of one step, tensor by tensor."""
    layers = []
    for (start, stop), tensors in zip(segments, shapes):
        values, offset, cut = normal(stream, stop - start), 0, []
        for shape in tensors:
            size = int(np.prod(shape))
            cut.append(values[offset : offset + size].reshape(shape))
            offset += -(-size // 16) * 16  # each parameter starts on a cache line
        layers.append(cut)
    return layers


def problem(generator, width=WIDTH):
    weights = weights_for(generator, width=width)
    inputs, targets = generator.normal(size=(40, width)) * 2, generator.normal(size=(40, 1))
    inputs[30:] *= 0.05  # not all are clipped
    return weights, inputs, targets


def test_two_workers_are_one_process_that_clips_each_unit(generator):
    """As one worker with the whole batch would do it, but for the two draws of noise.

    A divisor that follows the draw, a share of noise that is not N's, a worker that keeps silent
    when it has nothing, or a poisoned example that reaches the others, is off here.
    """
    given = problem(generator)
    given[2][POISONED] = np.inf
    cases = [
        ("utterance", 0.0, "zero_out"),
        ("utterance", Z, "zero_out"),
        ("utterance", Z, "replace_one"),
        ("micro_batch", 0.0, "zero_out"),
        ("micro_batch", Z, "zero_out"),
    ]
    for case, results in zip(cases, zip(*run_workers(train_worker, 2, *given, cases))):
        assert_is_one_process(given, results, *case)


def units_by_hand(unit, weights, inputs, targets, draws):
    """The gradient of each unit that is there."""
    if unit == "utterance":
        return [gradient_by_hand(weights, inputs[i], targets[i]) for part in draws for i in part]
    return [
        mean_gradient_by_hand(weights, inputs[part], targets[part], size=SIZE)
        for part in draws
        if part
    ]


def assert_is_one_process(given, results, unit, z, adjacency):
    """All steps of two workers against float64."""
    weights, inputs, targets = given
    streams = [NoiseStream.insecure(seed=7, rank=rank) for rank in range(2)]
    shapes = [[tensor.shape for tensor in tensors] for tensors in weights]
    kappa = 1 if (unit, adjacency) == ("utterance", "zero_out") else 2
    units = 2 * SIZE if unit == "utterance" else 2
    step = clipped = 0
    for epoch in range(2):
        z_t = z / (1 + 0.5 * epoch)
        for draws in GIVEN:
            with np.errstate(invalid="ignore"):
                gradients = units_by_hand(unit, weights, inputs, targets, draws)
                total, norms = clipped_sum_by_hand(gradients, scales=SCALES, max_grad_norm=CLIP)
            clipped += int((np.isfinite(norms) & (norms > CLIP)).sum())
            noises = [noise_by_hand(stream, results[0][2], shapes) for stream in streams]
            weights = [
                tuple(
                    value
                    - (0 if total is None else total[k][i] / units)
                    - kappa * CLIP * z_t * SCALES[k] / units
                    * (noises[0][k][i] + noises[1][k][i]) / np.sqrt(2)
                    for i, value in enumerate(layer)
                )
                for k, layer in enumerate(weights)
            ]  # fmt: skip
            for seen, *_ in results:  # every worker has the same weights
                for layer, expected in zip(seen[step], weights):
                    for found, value in zip(layer, expected):
                        np.testing.assert_allclose(found, value, rtol=2e-4, atol=2e-5)
            step += 1
    assert [counts for _, counts, *_ in results] == [[5, 5]] * 2
    counts = [statistics for *_, statistics in results]
    if unit == "utterance":
        assert [found.units for found in counts] == [18, 8]
    assert [found.non_finite for found in counts] == [2, 0]
    assert sum(found.clipped for found in counts) == clipped > 0


WIDE = 400


def draw_in_secret(weights, inputs, targets, epochs):
    """Runs on a worker: draws of its own; its weights, draws and what it sent."""
    network, flat = network_with(weights)
    workers = distributed.start()
    sampler = deal(unit="micro_batch", sampler="poisson", num_records=40, batch_size=workers.size,
                   rank=workers.rank, num_workers=workers.size, seed=0)  # fmt: skip
    steps = PrivateSteps(flat, z=Z, unit="micro_batch", micro_batch_size=1.0, max_grad_norm=CLIP,
                         sampler="poisson")  # fmt: skip
    seen, drawn, _ = train(steps, network, Examples(inputs, targets), sampler, epochs)
    return seen, [len(batch) for batch in drawn], steps.mechanism.sent


def test_workers_that_draw_in_secret_stay_in_step_and_every_empty_step_has_its_noise(generator):
    results = run_workers(draw_in_secret, 2, *problem(generator, WIDE), 8)
    steps, size = 8 * 20, 3 * WIDE  # n / B = 40 / 2; the first layer's weights
    empty = [np.array(drawn) == 0 for _, drawn, _ in results]
    assert (empty[0] != empty[1]).any()  # one has nothing while the other has something
    for one, other in zip(results[0][0], results[1][0]):
        for layer, same in zip(one, other):
            for tensor, again in zip(layer, same):
                assert (tensor == again).all(), "the workers' weights have drifted apart"
    for (seen, drawn, sent), nothing in zip(results, empty):
        assert len(seen) == len(drawn) == len(sent) == steps and 0 < nothing.sum() < steps
        alone = np.array(sent)[nothing][:, :size].astype(np.float64)  # the noise and nothing else
        ratios = alone.std(axis=1) / (2 * CLIP * Z * SCALES[0] / np.sqrt(2))
        # 6.5 standard errors, of some 120 empty steps at once; rejects 2/3, 3/2 and √N of it
        assert abs(ratios - 1).max() < 6.5 / np.sqrt(2 * size)
        correlation = np.corrcoef(alone[:2])[0, 1]  # two empty steps: noise drawn anew
        assert abs(correlation) < 6.5 / np.sqrt(size)
