"""What Algorithm 1 releases, and its units: golden values, enumeration and simulated draws."""

import itertools
import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.golden_vectors import cases
from support.refusals import one_sentence
from support.releases import release_with

from edp_mx.dp.accounting.release import Release
from edp_mx.errors import UserError

sound = partial(
    release_with,
    max_grad_norm=0.7,
    layer_scales=(2.0, 0.5, 1.0),
    adjacency="zero_out",
    variant="published",
)


def release_of(inputs):
    """The release of a golden case.

    Two of its words are not the project's: with `zero_out_microbatch` a whole micro-batch is the
    one example that comes or goes, and `shared_seed` clips and noises as published.
    """
    whole = inputs["adjacency"] == "zero_out_microbatch"
    return Release(
        unit="micro_batch",
        num_workers=inputs["N"],
        micro_batch_size=1 if whole else inputs["microbatch_size"],
        max_grad_norm=inputs["C"],
        layer_scales=inputs["alpha"],
        adjacency="zero_out" if whole else inputs["adjacency"],
        variant="calibrated" if inputs["variant"] == "calibrated" else "published",
    )


@pytest.mark.parametrize("case", cases("effective_multiplier"), ids=lambda case: case["id"])
def test_golden_values(case):
    inputs, expected = case["inputs"], case["expected"]
    release, z, alpha = release_of(inputs), inputs["z"], np.array(inputs["alpha"])
    in_worker = np.array(release.worker_noise_stddev(z))
    found = {
        "kappa": release.kappa,
        "aggregate_sensitivity": release.aggregate_sensitivity,
        "worker_noise_std": in_worker / (alpha if inputs["variant"] == "calibrated" else 1),
        "aggregate_noise_std": release.aggregate_noise_stddev(z),
        "z_eff": release.effective_noise_multiplier(z),
    }
    if inputs["variant"] == "shared_seed":  # the mean of N equal draws is one draw
        found["aggregate_noise_std"] = in_worker
        found["z_eff"] = in_worker[0] / release.aggregate_sensitivity
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        np.testing.assert_allclose(found[key], value, rtol=case["rtol"], err_msg=key)


UNITS = [("micro_batch", "published")]
UNITS += [(unit, "calibrated") for unit in ("micro_batch", "utterance", "user")]
RELEASES = st.builds(
    lambda unit, **changes: Release(unit=unit[0], variant=unit[1], **changes),
    unit=st.sampled_from(UNITS),
    num_workers=st.integers(1, 64),
    micro_batch_size=st.integers(1, 64),
    max_grad_norm=st.floats(1e-3, 1e3),
    layer_scales=st.lists(st.floats(1e-2, 10), min_size=1, max_size=5),
    adjacency=st.sampled_from(["replace_one", "zero_out"]),
    sampler=st.sampled_from(["shuffle", "poisson"]),
)


@given(RELEASES, st.integers(0, 2**32 - 1))
def test_no_change_of_a_gradient_is_likelier_than_the_multiplier_says(release, seed):
    """An independent look: random changes of a clipped mean, measured in units of the noise."""
    generator, z = np.random.default_rng(seed), 1.7
    scales = np.array(release.layer_scales)
    moves = generator.standard_normal((50, len(scales)))  # in the scaled space
    moves = np.concatenate([moves, np.eye(len(scales))])
    moves *= release.kappa * release.max_grad_norm / np.linalg.norm(moves, axis=1, keepdims=True)
    parts = 1 if release.unit == "micro_batch" else release.micro_batch_size
    moved = moves * scales / parts  # (52, L) of a worker
    whole = np.array(release.aggregate_noise_stddev(z)) * release.num_workers
    for stddev, multiplier in (
        (whole, release.effective_noise_multiplier(z)),
        (release.worker_noise_stddev(z), release.worker_noise_multiplier(z)),
    ):
        distances = np.linalg.norm(moved / np.array(stddev), axis=1)
        assert distances.max() == pytest.approx(1 / multiplier, rel=1e-9)


@given(
    gradients=st.lists(st.integers(-6, 6), min_size=1, max_size=5),
    changed=st.integers(-6, 6),
    size=st.sampled_from([0.5, 1.0, 3.0]),
)
def test_no_drawn_micro_batch_is_moved_by_more_than_kappa(gradients, changed, size):
    """All draws of a small shard: its first record is left out, made zero, or replaced."""
    release = release_with(num_workers=1, micro_batch_size=size, sampler="poisson")

    def released(drawn):
        return np.clip(sum(drawn) / size, -1, 1)  # 0 where nothing was drawn

    first, *others = gradients
    for number in range(2 ** len(others)):
        drawn = [g for place, g in enumerate(others) if number >> place & 1]
        ways = [released(drawn), *(released([*drawn, g]) for g in (first, 0, changed))]
        assert max(ways) - min(ways) <= release.aggregate_sensitivity


def test_one_drawn_record_turns_another_round_though_one_is_expected():
    """Why κ = 1 would be wrong for an expected size of 1: the bound of 2 C is reached."""
    release = release_with(
        num_workers=1, micro_batch_size=1, adjacency="zero_out", sampler="poisson"
    )
    alone, with_it = np.clip(-3.0 / 1, -1, 1), np.clip((-3.0 + 6.0) / 1, -1, 1)
    assert with_it - alone == release.aggregate_sensitivity == 2


@pytest.mark.parametrize("size", [0.0, -1.0, math.inf, math.nan])
def test_an_expected_size_need_not_be_whole_but_possible(size):
    assert sound(**{"micro_batch_size": 2.5, "sampler": "poisson"}).kappa == 2
    one_sentence("micro_batch_size", sound, **{"micro_batch_size": size, "sampler": "poisson"})


@pytest.mark.parametrize(
    "field, value",
    [
        ("num_workers", 0),
        ("num_workers", 1.5),
        ("micro_batch_size", 0),
        ("micro_batch_size", 1.5),
        ("micro_batch_size", math.inf),
        ("sampler", "fixed_size"),
        ("max_grad_norm", 0.0),
        ("max_grad_norm", math.inf),
        ("max_grad_norm", math.nan),
        ("layer_scales", ()),
        ("layer_scales", (1.0, 0.0)),
        ("layer_scales", (1.0, math.nan)),
        ("adjacency", "add_remove"),
        ("variant", "shared_seed"),
        ("clip_rule", "mine"),
    ],
)
def test_impossible_releases_are_refused_by_name(field, value):
    one_sentence(field, sound, **{field: value})


C, Z = 0.7, 1.3
SPREADS = [(1, 8), (2, 4), (4, 2), (8, 1)]


unit_release = partial(release_with, max_grad_norm=C, layer_scales=(1.0, 0.25))


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
    published = unit_release(**given, variant="published")
    exact = unit_release(**given, variant="calibrated")
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
    release = unit_release(num_workers=workers, micro_batches_per_worker=k, variant="published")
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
        most_allowed = unit_release(unit=unit, sampler=sampler, **given).aggregate_sensitivity
        assert most / size <= most_allowed + 1e-12
        is_opposite = sum(first) * sum(changed) < 0
        if sum(first) and (adjacency == "zero_out" or is_opposite):
            assert most / size == pytest.approx(most_allowed)  # the bound is reached


@pytest.mark.parametrize("unit", ["utterance", "user"])
def test_k_belongs_to_micro_batches(unit):
    with pytest.raises(UserError, match=f"must be 1, because each {unit} is clipped by itself"):
        unit_release(unit=unit, micro_batches_per_worker=2)
    one_sentence("micro_batches_per_worker is 0", unit_release, micro_batches_per_worker=0)
