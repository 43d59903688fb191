"""What is clipped, in which units: k micro-batches on a worker, each utterance, each user."""

import itertools
import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import releases

from edp_mx.errors import UserError

C, Z = 0.7, 1.3
SPREADS = [(1, 8), (2, 4), (4, 2), (8, 1)]


release_with = partial(releases.release_with, max_grad_norm=C, layer_scales=(1.0, 0.25))


@given(
    workers=st.integers(1, 16),
    k=st.integers(1, 16),
    adjacency=st.sampled_from(["replace_one", "zero_out"]),
    size=st.integers(1, 9),
    z=st.floats(1e-3, 100),
)
def test_k_micro_batches_on_each_worker_are_n_of_algorithm_1(workers, k, adjacency, size, z):
    """The published law by its own formula; the calibrated one by κ C z / N."""
    n = workers * k
    given = {"num_workers": workers, "micro_batches_per_worker": k, "adjacency": adjacency,
             "micro_batch_size": size}  # fmt: skip
    published = release_with(**given, variant="published")
    exact = release_with(**given, variant="calibrated")
    for release in (published, exact):
        assert release.num_micro_batches == n and release.units_per_worker == k
        assert release.batch_size == n * size
        assert release.aggregate_sensitivity == pytest.approx(release.kappa * C / n, rel=1e-12)
    kappa = 1 if adjacency == "zero_out" and size == 1 else 2
    assert published.kappa == exact.kappa == kappa
    assert published.aggregate_noise_stddev(z) == pytest.approx([C * z / n**1.5] * 2, rel=1e-12)
    assert exact.aggregate_noise_stddev(z) == pytest.approx(
        [kappa * C * z / n, 0.25 * kappa * C * z / n], rel=1e-12
    )
    assert published.effective_noise_multiplier(z) == pytest.approx(
        z / (kappa * math.sqrt(n)), rel=1e-12
    )
    assert exact.effective_noise_multiplier(z) == pytest.approx(z, rel=1e-12)


@pytest.mark.parametrize("workers, k", SPREADS)
def test_the_published_noise_is_that_of_simulated_micro_batches(workers, k):
    """Each of N micro-batches gets its own draw of C z / N; a worker sends the mean of its k."""
    release = release_with(num_workers=workers, micro_batches_per_worker=k, variant="published")
    draws = np.random.default_rng(7).standard_normal((workers, k, 40_000)) * (C * Z / 8)
    sent = draws.mean(axis=1)  # (workers, draws)
    for stddev in release.worker_noise_stddev(Z):
        assert sent.std() == pytest.approx(stddev, rel=0.03)  # standard error 0.4 % at most
    for stddev in release.aggregate_noise_stddev(Z):
        assert sent.mean(axis=0).std() == pytest.approx(stddev, rel=0.03)


GRADIENTS = st.lists(st.integers(-4, 4), max_size=3)  # of a unit, utterance by utterance


@given(
    units=st.lists(GRADIENTS, min_size=2, max_size=4),
    changed=GRADIENTS,
    size=st.sampled_from([1, 3, 5]),
    unit=st.sampled_from(["utterance", "user"]),
    sampler=st.sampled_from(["shuffle", "poisson"]),
)
def test_a_clipped_unit_moves_the_sum_by_c_at_most(units, changed, size, unit, sampler):
    """All draws of a few units: the first has gone, or is another; κ = 1, κ = 2."""
    moved = {"zero_out": 0.0, "replace_one": 0.0}

    def part(gradients):
        return float(np.clip(sum(gradients), -C, C))

    first, *others = units
    for drawn in itertools.product([False, True], repeat=len(others)):
        rest = sum(part(other) for other, there in zip(others, drawn) if there)
        with_it, without, replaced = (rest + p for p in (part(first), 0.0, part(changed)))
        moved["zero_out"] = max(moved["zero_out"], abs(with_it - without))
        moved["replace_one"] = max(moved["replace_one"], abs(with_it - replaced))
    for adjacency, most in moved.items():
        given = {"num_workers": 1, "micro_batch_size": size, "adjacency": adjacency}
        most_allowed = release_with(unit=unit, sampler=sampler, **given).aggregate_sensitivity
        assert most / size <= most_allowed + 1e-12
        is_opposite = sum(first) * sum(changed) < 0
        if sum(first) and (adjacency == "zero_out" or is_opposite):
            assert most / size == pytest.approx(most_allowed)  # the bound is reached


@pytest.mark.parametrize("unit", ["utterance", "user"])
def test_k_belongs_to_micro_batches(unit):
    with pytest.raises(UserError, match=f"each {unit} is clipped by itself; leave it at 1"):
        release_with(unit=unit, micro_batches_per_worker=2)
    with pytest.raises(UserError, match="micro_batches_per_worker is 0"):
        release_with(micro_batches_per_worker=0)
