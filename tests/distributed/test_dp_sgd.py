"""DP-SGD through real workers: against one process by hand, and attacked."""

import numpy as np
import pytest
from support.examples import (
    SCALES,
    WIDTH,
    clipped_sum_by_hand,
    gradient_by_hand,
    weights_for,
)
from support.workers import run_workers

from edp_mx.accounting.decay import Decay
from edp_mx.privacy.noise import NoiseStream

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
# Keys are the operating system's: each assertion on the audits fails by chance less than once in
# 1e7 (from the binomial and chi-squared distributions themselves).
SIGNIFICANCE = 1e-4  # two rates have to err at once: a sound system fails at 2e-8
SURE = 1 - 1e-9  # that a sound system passes all checks of a noise audit


def train_worker(weights, inputs, targets, given, cases):
    """Runs on a worker: the real loop and trainer, case by case; the weights after each step."""
    import numpy as np
    from support.examples import (
        SCALES,
        Examples,
        loop_clipping,
        network_with,
        plan_with,
        release_with,
    )

    from edp_mx.data.draws import Utterances
    from edp_mx.data.poisson_sampling import PoissonShard
    from edp_mx.privacy.mechanism import Mechanism
    from edp_mx.privacy.noise import NoiseStream
    from edp_mx.privacy.trainer import PrivateTrainer
    from edp_mx.runtime import distributed
    from edp_mx.training.config import TrainingConfig
    from edp_mx.training.loop import TrainingLoop

    class Given(PoissonShard):
        """Draws what it is told to."""

        micro_batch_size = SIZE
        steps_per_epoch = len(given)

        def micro_batches(self, epoch):
            return (np.array(step[self.rank], np.int64) for step in given)

    workers = distributed.start()
    shard = Given.deal(
        40, batch_size=int(SIZE * workers.size), num_workers=workers.size, rank=workers.rank, seed=0
    )

    def train(z, adjacency):
        network, flat = network_with(weights)
        release = release_with(
            num_workers=workers.size,
            micro_batch_size=SIZE,
            max_grad_norm=CLIP,
            adjacency=adjacency,
            sampler="poisson",
        )
        mechanism = Mechanism(
            plan=plan_with(release, z=z, decay=DECAY),
            clipping=loop_clipping(flat, scales=SCALES, max_grad_norm=CLIP),
            noise=NoiseStream.insecure(seed=7, rank=workers.rank),
        )
        trainer = PrivateTrainer(
            flat=flat, optimizer="sgd", optimizer_params={"learning_rate": 1.0}
        )
        sampler = Utterances((shard,), 40, np.empty(0, np.int64))
        seen = []

        def watch(batches, epoch, steps):
            for indices in batches:
                yield indices
                seen.append(
                    [[p.data().asnumpy() for p in layer.parameters] for layer in flat.layers]
                )

        summaries = list(
            TrainingLoop(
                network,
                Examples(inputs, targets),
                sampler,
                mechanism,
                trainer,
                TrainingConfig(epochs=2),
                workers=workers,
                permit=lambda _: sampler.steps_per_epoch,
            ).epochs(watch)
        )
        segments = [(part.start, part.stop) for part in flat.segments]
        return {
            "seen": seen,
            "segments": segments,
            "statistics": mechanism.clipping.take_statistics(),
            "steps": [summary.steps for summary in summaries],
        }

    return [train(*case) for case in cases]


def noise_by_hand(stream, segments, shapes):
    """One worker's standard normal numbers of one step, tensor by tensor."""
    layers = []
    for (start, stop), tensors in zip(segments, shapes):
        values, offset, cut = stream.normal(stop - start), 0, []
        for shape in tensors:
            size = int(np.prod(shape))
            cut.append(values[offset : offset + size].reshape(shape))
            offset += -(-size // 16) * 16  # each parameter starts on a cache line
        layers.append(cut)
    return layers


@pytest.fixture
def problem(generator):
    weights = weights_for(generator)
    inputs, targets = generator.normal(size=(40, WIDTH)) * 2, generator.normal(size=(40, 1))
    inputs[30:] *= 0.05  # not all are clipped
    targets[POISONED] = np.inf
    return weights, inputs, targets


def test_two_workers_are_one_process_that_clips_each_example(problem):
    """DP-SGD as one worker with the whole batch would do it, but for the two draws of noise.

    A divisor that follows the draw, a share of noise that is not N's, a worker that keeps silent
    when it has nothing, or a poisoned example that reaches the others, is off here.
    """
    cases = [(0.0, "zero_out"), (Z, "zero_out"), (Z, "replace_one")]
    by_worker = run_workers(train_worker, 2, *problem, GIVEN, cases)
    for case, results in zip(cases, zip(*by_worker)):
        assert_is_one_process(problem, results, *case)


def assert_is_one_process(problem, results, z, adjacency):
    """All steps of two workers against float64."""
    weights, inputs, targets = problem
    streams = [NoiseStream.insecure(seed=7, rank=rank) for rank in range(2)]
    shapes = [[tensor.shape for tensor in tensors] for tensors in weights]
    kappa, batch = (1 if adjacency == "zero_out" else 2), 2 * SIZE
    step = clipped = 0
    for epoch in range(2):
        z_t = z / (1 + 0.5 * epoch)
        for draws in GIVEN:
            drawn = [i for indices in draws for i in indices]
            gradients = [gradient_by_hand(weights, inputs[i], targets[i]) for i in drawn]
            with np.errstate(invalid="ignore"):
                total, norms = clipped_sum_by_hand(gradients, scales=SCALES, max_grad_norm=CLIP)
            clipped += int((np.isfinite(norms) & (norms > CLIP)).sum())
            noises = [noise_by_hand(stream, results[0]["segments"], shapes) for stream in streams]
            weights = [
                tuple(
                    value
                    - (0 if total is None else total[k][i] / batch)
                    - kappa * CLIP * z_t * SCALES[k] / batch
                    * (noises[0][k][i] + noises[1][k][i]) / np.sqrt(2)
                    for i, value in enumerate(layer)
                )
                for k, layer in enumerate(weights)
            ]  # fmt: skip
            for result in results:  # every worker has the same weights
                for layer, expected in zip(result["seen"][step], weights):
                    for found, value in zip(layer, expected):
                        np.testing.assert_allclose(found, value, rtol=2e-4, atol=2e-5)
            step += 1
    assert [result["steps"] for result in results] == [[5, 5]] * 2
    counts = [result["statistics"] for result in results]
    assert [found.units for found in counts] == [18, 8]
    assert [found.non_finite for found in counts] == [2, 0]
    assert sum(found.clipped for found in counts) == clipped


def audit_worker(size):
    """Runs on a worker: A0 and A1 of the sound system and of each bug, in one process."""
    from unittest import mock

    from support.example_probe import attack

    from edp_mx.attacks.audit.audited_step import AuditedStep
    from edp_mx.attacks.audit.noise import audit_noise
    from edp_mx.privacy.clipping import ClippedSum
    from edp_mx.privacy.mechanism import Mechanism
    from edp_mx.runtime import distributed

    workers = distributed.start()
    take, segments = ClippedSum.take, Mechanism._noise_segments

    def divide_by_drawn(self):
        values, factor = take(self)
        return values, factor * few.micro_batch_size / max(self.num_units, 1)

    def noise_forgotten(self, multiplier):
        for part, stddev in segments(self, multiplier):
            yield part, 0.0 if workers.rank == workers.size - 1 else stddev

    def audited(step, **settings):
        noise = audit_noise(workers, step, size=size, confidence=SURE)
        found = attack(workers, step, significance=SIGNIFICANCE, **settings)
        return {"noise": (noise.to_dict(), noise.describe()), **found}

    common = {"unit": "utterance", "adjacency": "zero_out", "layer_scales": SCALES}
    many, few = AuditedStep(micro_batch_size=8, **common), AuditedStep(micro_batch_size=4, **common)
    spread = {"slots": 16, "against": 0, "draws": 4000}
    opposed = {"slots": 1, "against": 3, "draws": 300}
    found = {"spread": audited(many, **spread), "opposed": audited(few, **opposed)}
    with mock.patch.object(Mechanism, "_noise_segments", noise_forgotten):
        found["noise forgotten on one rank"] = audited(many, **spread)
    with mock.patch.object(ClippedSum, "take", divide_by_drawn):  # μ = 2: half of it is enough
        found["divided by the drawn size"] = audited(few, **{**opposed, "draws": 1000})
    return found


@pytest.fixture(scope="module")
def audits():
    return run_workers(audit_worker, 2, 20_000)


@pytest.mark.parametrize("way, batch", [("spread", 16), ("opposed", 8)])
def test_a_sound_system_is_not_refuted(audits, way, batch):
    found = audits[0][way]
    noise, text = found["noise"]
    assert not noise["refuted"], text
    checks = {check["name"]: check["measured"] for check in noise["checks"]}
    for layer, scale in enumerate(SCALES):  # κ C z α_k / B
        measured = checks[f"noise on layer {layer}, stddev"]
        assert measured == pytest.approx(scale / batch, rel=0.03)
    assert found["mu"] < 1  # claimed: κ C / (κ C z)
    without, with_it = found["means"]  # one example's C / B apart, ± 6 standard errors
    assert with_it - without == pytest.approx(1 / batch, abs=9 / batch / 300**0.5)


def test_the_attack_reaches_most_of_what_is_claimed(audits):
    assert audits[0]["spread"]["mu"] > 0.6


@pytest.mark.parametrize("bug", ["noise forgotten on one rank", "divided by the drawn size"])
def test_a_planted_bug_is_refuted(audits, bug):
    assert audits[0][bug]["mu"] > 1, audits[0][bug]["means"]


def test_silence_of_one_worker_is_heard_by_the_noise_audit(audits):
    noise, text = audits[0]["noise forgotten on one rank"]["noise"]
    assert noise["refuted"], text
    noise, text = audits[0]["divided by the drawn size"]["noise"]
    assert not noise["refuted"], text  # zero gradients do not show it
