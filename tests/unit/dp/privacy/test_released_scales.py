"""α: where it comes from, and its release with noise, how noisy that is and what it costs."""

import math
from functools import partial
from types import SimpleNamespace

import mxnet as mx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mxnet import autograd
from mxnet.gluon import nn
from support.examples import plan_with, release_with
from support.golden_vectors import cases
from support.models import loss_and_gradients, part, random_batch, tiny_model
from support.prescribed import flat_of

from edp_mx.config import ExperimentConfig
from edp_mx.dp.accounting.config import PrivacyConfig, ScaleRelease
from edp_mx.dp.accounting.decay import Decay
from edp_mx.dp.accounting.plan import Plan
from edp_mx.dp.accounting.release import Release
from edp_mx.dp.accounting.zcdp import log_epsilon_exact, log_rho_of
from edp_mx.dp.privacy.flat import FlatGradients
from edp_mx.dp.privacy.layer_scales import (
    FLOOR,
    clipped,
    scales_by_norm,
    scales_by_release,
    scales_by_size,
    settle_scales,
)
from edp_mx.dp.privacy.layers import layers_of
from edp_mx.dp.privacy.noise import NoiseStream
from edp_mx.dp.sampling.dealing import deal
from edp_mx.dp.sampling.draws import MicroBatches
from edp_mx.dp.sampling.poisson import PoissonShard
from edp_mx.dp.sampling.shuffle import Shard
from edp_mx.errors import UserError
from edp_mx.runs.mechanism import build_mechanism, disjoint_passes
from edp_mx.runtime.distributed import Workers
from edp_mx.runtime.progress import no_heartbeat
from edp_mx.training.config import TrainingConfig

SHAPES = [(3, 4), (5,), (2,)]
Z = 6  # standard errors


class GivenNoise:
    """Stands for a noise stream: hands out given numbers."""

    def __init__(self, values):
        self.values = np.asarray(values, np.float32)

    def scale_and_add(self, array, *, factor, stddev, source):
        array[:] = factor * source + stddev * self.values


def passes(flat, gradients):
    """Puts one gradient after the other into the flat array, as backward passes would."""
    for gradient in gradients:
        array = flat.gradients()
        for segment, tensor in zip(flat.segments, gradient):
            array[segment.start : segment.start + tensor.size] = tensor.ravel()
        flat.mark(is_fresh=True)
        yield


class Remember:
    """Stands for the mean over workers that run one after the other: what each of them sent."""

    def __init__(self):
        self.sent = []

    def __call__(self, mine):
        self.sent.append(mine)
        return np.mean(self.sent, axis=0)


def released(per_worker, release, noise=None):
    """The scales that the last worker ends with, who has heard all, and the sum of all messages.

    `per_worker`: a list of gradients for each.
    """
    remember = Remember()
    for rank, gradients in enumerate(per_worker):
        flat = flat_of(SHAPES)
        scales = scales_by_release(
            flat,
            release=release,
            backward_passes=passes(flat, gradients),
            noise=GivenNoise(np.zeros(3) if noise is None else noise[rank]),
            num_workers=len(per_worker),
            mean_over_workers=remember,
        )
    return settle_scales(scales), np.sum(remember.sent, axis=0)


def random_gradients(generator, count):
    return [
        [generator.normal(size=shape) * 10.0 ** generator.uniform(-1, 1) for shape in SHAPES]
        for _ in range(count)
    ]


@pytest.mark.parametrize("num_workers", [1, 3])
def test_the_mean_of_clipped_norms_against_a_slow_form(num_workers, generator):
    release = ScaleRelease(noise_multiplier=0.2, clip=1.5, micro_batches=7)
    gradients = random_gradients(generator, 7)
    noise = generator.normal(size=(num_workers, 3)).astype(np.float32)
    per_worker = [gradients[rank::num_workers] for rank in range(num_workers)]
    expected = np.zeros(3)
    for gradient in gradients:
        norms = np.array([np.sqrt((tensor**2).sum()) for tensor in gradient])
        expected += norms / max(1.0, np.sqrt((norms**2).sum()) / 1.5) / 7
    stddev = math.sqrt(2) * 1.5 * 0.2 / 7  # docs/privacy.md, section 9
    expected += stddev * noise.sum(axis=0) / math.sqrt(num_workers)
    scales, total = released(per_worker, release, noise)
    np.testing.assert_allclose(total / 7, expected, rtol=1e-6, atol=1e-6)
    assert expected.max() > 0.01
    np.testing.assert_allclose(scales, np.maximum(expected / expected.max(), FLOOR), rtol=1e-3)
    shares = [release.share(rank, num_workers=num_workers) for rank in range(num_workers)]
    assert shares == [len(gradients) for gradients in per_worker]


VECTORS = st.lists(st.floats(0, 1e6), min_size=4, max_size=4)


@given(VECTORS, VECTORS, st.floats(0.01, 100), st.integers(1, 1000))
def test_one_utterance_moves_the_mean_by_root_two_at_most(one, other, clip, m):
    """Any layer norms may become any others; clipped by hand, none is further than stated."""
    change = (clipped(np.array(one), clip=clip) - clipped(np.array(other), clip=clip)) / m
    assert np.linalg.norm(change) <= math.sqrt(2) * clip / m * (1 + 1e-12)
    for vector in (one, other):
        assert np.linalg.norm(clipped(np.array(vector), clip=clip)) <= clip * (1 + 1e-12)


def test_root_two_is_reached_and_no_smaller_bound_would_do():
    """A gradient that moves from one layer into another; the noise is a multiple of that."""
    release = ScaleRelease(noise_multiplier=3.0, clip=2.0, micro_batches=4)
    zero = [np.zeros(shape) for shape in SHAPES]
    others = [[np.ones(shape) for shape in SHAPES]] * 3
    totals = []
    for layer in (0, 1):
        gradient = [tensor + (100.0 if k == layer else 0.0) for k, tensor in enumerate(zero)]
        totals.append(released([[gradient, *others]], release)[1])
    change = np.linalg.norm(totals[0] - totals[1]) / 4
    assert change == pytest.approx(math.sqrt(2) * 2.0 / 4, rel=1e-6)  # it is sent in float32
    assert change == pytest.approx(release.sensitivity, rel=1e-6)
    assert release.noise_stddev == pytest.approx(3.0 * release.sensitivity, rel=1e-12)


@pytest.mark.parametrize("num_workers", [1, 4])
def test_the_noise_of_all_workers_together_is_what_is_stated(num_workers):
    release = ScaleRelease(noise_multiplier=2.0, clip=0.5, micro_batches=50)
    draws, width = 60, 400
    flat = flat_of([(1,)] * width)
    streams = [NoiseStream.from_operating_system() for _ in range(num_workers)]
    means = []
    for _ in range(draws):
        remember = Remember()
        for noise in streams:
            scales_by_release(
                flat,
                release=release,
                backward_passes=passes(flat, []),
                noise=noise,
                num_workers=num_workers,
                mean_over_workers=remember,
            )
        means.append(np.sum(remember.sent, axis=0) / 50)
    ratio = np.std(means) / (math.sqrt(2) * 0.5 * 2.0 / 50)
    assert abs(ratio - 1) < Z / math.sqrt(2 * draws * width)
    assert not abs(1.5 * ratio - 1) < Z / math.sqrt(2 * draws * width)
    assert not abs(ratio / 1.5 - 1) < Z / math.sqrt(2 * draws * width)


def test_a_gradient_that_is_not_finite_counts_as_zero():
    release = ScaleRelease(clip=1.0, micro_batches=2)
    good = [np.full(shape, 0.1) for shape in SHAPES]
    for bad in (np.nan, np.inf):
        spoilt = [*good[:2], np.full(SHAPES[2], bad)]
        _, total = released([[good, spoilt]], release)
        _, alone = released([[good]], release)
        np.testing.assert_array_equal(total, alone)


def test_noise_below_zero_is_lifted_to_the_floor_and_without_signal_all_are_one():
    release = ScaleRelease(noise_multiplier=1.0, clip=1.0, micro_batches=1)
    scales, _ = released([[[np.zeros(shape) for shape in SHAPES]]], release, noise=[[2.0, -1, 1]])
    assert scales == (1.0, FLOOR, 0.5)
    scales, _ = released([[[np.zeros(shape) for shape in SHAPES]]], release, noise=[[-2.0, -1, -1]])
    assert scales == (1.0, 1.0, 1.0)


def test_the_gradients_are_used_up_and_must_be_new():
    flat = flat_of(SHAPES)
    gradient = [np.ones(shape) for shape in SHAPES]
    arguments = {"release": ScaleRelease(), "noise": GivenNoise(np.zeros(3)), "num_workers": 1,
                 "mean_over_workers": lambda mine: mine}  # fmt: skip
    scales_by_release(flat, backward_passes=passes(flat, [gradient]), **arguments)
    with pytest.raises(UserError, match="released (only )?once"):
        flat.refuse_stale()  # training must not begin with it
    with pytest.raises(UserError, match="released (only )?once"):
        scales_by_release(flat, backward_passes=[None], **arguments)  # a turn without a pass


@pytest.mark.parametrize("sampler", ["shuffle", "poisson"])
def test_the_ledger_is_told_one_gaussian_without_amplification(sampler):
    """Against the hockey stick of two Gaussians, integrated, at the distance of the two worlds."""
    release = ScaleRelease(noise_multiplier=2.5, clip=3.0, micro_batches=300)
    step = Release(unit="micro_batch", num_workers=1, micro_batch_size=8, max_grad_norm=1.0,
                   adjacency="zero_out", variant="calibrated", sampler=sampler)  # fmt: skip
    plan = Plan(step, noise_multiplier=1.0, decay=Decay(), epochs=1, delta=1e-5,
                scales_source="dp_release", scales_multiplier=release.noise_multiplier)  # fmt: skip
    (entry,) = plan.scales_entries()
    event = entry.event
    assert (event.sampler, event.count, event.sample_rate) == (sampler, 1, 1.0)
    rho = math.exp(log_rho_of([event]))
    assert rho == pytest.approx(1 / (2 * 2.5**2), rel=1e-12)
    x = np.linspace(-12, 12, 200_001)  # in units of the noise
    moved = release.sensitivity / release.noise_stddev
    here, there = np.exp(-(x**2) / 2), np.exp(-((x - moved) ** 2) / 2)
    epsilon = math.exp(log_epsilon_exact(math.log(rho), 1e-5))
    over = np.maximum(there - math.exp(epsilon) * here, 0).sum() * (x[1] - x[0])
    assert over / math.sqrt(2 * math.pi) == pytest.approx(1e-5, rel=1e-3)


class Corpus:
    """Stands for the training part; keeps which records were asked for."""

    def __init__(self, whole):
        self.whole, self.asked = whole, []

    def __len__(self):
        return len(self.whole)

    def batch(self, indices):
        self.asked.append(list(indices))
        return part(self.whole, indices)


class Made:
    """Stands for the books of a run: its plan, and α if it is resumed."""

    def __init__(self, release, known):
        self.plan, self._known = plan_with(release), known

    def known_scales(self):
        return self._known

    def complete(self, scales):
        self.plan = self.plan.with_layer_scales(scales)
        return self.plan


@pytest.mark.parametrize(
    "deal", [Shard.deal, partial(PoissonShard.deal, steps_per_epoch=7)], ids=["shuffle", "poisson"]
)
def test_a_configuration_s_scales_come_from_disjoint_micro_batches(deal, generator):
    """Against norms of the parameters' own gradients, with next to no noise."""
    corpus = Corpus(random_batch(generator, generator.integers(1, 6, 20)))
    model, alone = tiny_model(), Workers(0, 1, 0)
    flat = FlatGradients(layers_of(model))
    training = TrainingConfig(batch_size=3)
    shard = deal(20, batch_size=3, num_workers=1, rank=0, seed=0)
    draws = MicroBatches((shard,), 20, np.empty(0, np.int64))

    def build(micro_batches, known=None, **settings):
        release = ScaleRelease(noise_multiplier=1e-9, clip=0.3, micro_batches=micro_batches)
        privacy = PrivacyConfig(layer_scales="dp_release", scale_release=release)
        config = ExperimentConfig(privacy=privacy, training=training)
        prepared = SimpleNamespace(model=model, train=corpus)
        made = Made(
            release_with(unit="micro_batch", layer_scales=None, sampler=shard.sampler), known
        )
        build_mechanism(config, alone, prepared, draws, flat, spending=made, **settings)
        return made.plan.release

    passes_told = []
    released = build(6, heartbeat=passes_told.append)
    assert released.sampler == shard.sampler and len(passes_told) == 6
    records = [record for indices in corpus.asked for record in indices]
    assert len(records) == len(set(records)) == 18 and [len(i) for i in corpus.asked] == [3] * 6

    expected = np.zeros(len(flat.layers))
    for indices in corpus.asked:
        batch = part(corpus.whole, np.array(indices))
        _, gradients = loss_and_gradients(model, batch, weights=[1 / 3] * 3)
        squares = {name: (g.astype(np.float64) ** 2).sum() for name, g in gradients.items()}
        norms = np.array([sum(squares[p.name] for p in x.parameters) for x in flat.layers]) ** 0.5
        expected += norms * min(1, 0.3 / np.sqrt((norms**2).sum()))
    wanted = np.maximum(expected / expected.max(), FLOOR)
    np.testing.assert_allclose(released.layer_scales, wanted, rtol=1e-4)

    corpus.asked.clear()
    resumed = build(6, known=released.layer_scales)
    assert resumed.layer_scales == released.layer_scales and not corpus.asked
    with pytest.raises(UserError, match=r"scale_release\.micro_batches: 7 .* need 21 .* has 20"):
        build(7)
    assert not corpus.asked  # refused before anything was looked at


HELD = [8, 4]  # records of each worker: 12 dealt over two workers with four lanes each


class Heard(Workers):
    """Stands for one of two workers, and knows what the other one sends."""

    def gather(self, value):
        assert value == HELD[self.rank]
        return HELD


class Asked(Exception):
    """A micro-batch of so many records was asked for."""


class Twelve:
    """Stands for a training part of twelve records, until the first of them are asked for."""

    def __len__(self):
        return 12

    def batch(self, records):
        raise Asked(len(records))


@pytest.mark.parametrize("rank", [0, 1])
def test_a_worker_with_too_few_records_makes_all_refuse(rank):
    """The lanes of the last worker are the shorter ones; on average there are enough records."""
    draws = deal(unit="micro_batch", sampler="shuffle", num_records=12, batch_size=8, rank=rank,
                 num_workers=2, seed=0, micro_batches_per_worker=4)  # fmt: skip
    prepared = SimpleNamespace(train=Twelve())

    def begin(micro_batches):
        release = ScaleRelease(micro_batches=micro_batches)
        privacy = PrivacyConfig(layer_scales="dp_release", scale_release=release)
        config = ExperimentConfig(privacy=privacy, training=TrainingConfig(batch_size=8))
        next(disjoint_passes(config, Heard(rank, 2, rank), prepared, draws, no_heartbeat))

    for micro_batches in (10, 12):
        with pytest.raises(UserError, match="need . records of worker 1, .* has 4") as refused:
            begin(micro_batches)
        assert refused.value.is_shared
    for micro_batches in (8, 9):  # of nine, the first worker has five
        with pytest.raises(Asked, match="1"):
            begin(micro_batches)


@pytest.mark.parametrize("case", cases("floor_alpha"), ids=lambda case: case["id"])
def test_golden(case):
    assert case["inputs"]["rel_floor"] == FLOOR
    np.testing.assert_allclose(
        settle_scales(case["inputs"]["alpha"]), case["expected"]["alpha"], rtol=case["rtol"]
    )


@given(st.lists(st.floats(0, 1e30), min_size=1, max_size=20))
def test_the_largest_is_one_and_none_is_below_the_floor(scales):
    result = settle_scales(scales)
    assert max(result) == 1
    assert min(result) >= FLOOR


@pytest.mark.parametrize("bad", [[np.nan, 1.0], [np.inf, 1.0], [0.0, 0.0]])
def test_what_cannot_be_normalised_becomes_ones(bad):
    assert settle_scales(bad) == (1.0, 1.0)


def test_by_size_and_by_norm():
    net = nn.HybridSequential(prefix="net_")
    net.add(nn.Dense(4, in_units=4, use_bias=False), nn.Dense(1, in_units=4, use_bias=False))
    net.initialize()
    flat = FlatGradients(layers_of(net))
    assert scales_by_size(flat).tolist() == [4.0, 2.0]
    with autograd.record():
        loss = net(mx.nd.ones((2, 4))).sum()
    loss.backward()
    norms = [np.linalg.norm(block.weight.grad().asnumpy()) for block in net]
    others = np.array([3.0, 0.0])  # another worker's norms: all must end with the same scales
    scales = scales_by_norm(flat, lambda mine: (mine + others) / 2)
    expected = (np.array(norms) + others) / 2
    np.testing.assert_allclose(scales, expected, rtol=1e-6)
