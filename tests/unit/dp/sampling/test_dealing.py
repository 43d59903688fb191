"""What is clipped in one step: the same units however workers are counted, and at most K each."""

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from support.refusals import one_sentence

from edp_mx.dp.accounting.samplers import SAMPLERS
from edp_mx.dp.accounting.units import UNITS
from edp_mx.dp.sampling.dealing import deal
from edp_mx.dp.sampling.draws import Draw, MicroBatches, Sampler, Users, Utterances
from edp_mx.dp.sampling.poisson import PoissonShard
from edp_mx.dp.sampling.shuffle import Shard

KINDS = {"micro_batch": MicroBatches, "utterance": Utterances, "user": Users}


def deal_all(num_workers, **wanted):
    """The samplers of all workers; draws repeat unless told otherwise."""
    settings = {"seed": 5, "insecure_fixed_seed": 3, **wanted}
    if settings["unit"] == "user":
        settings.setdefault("max_utterances_per_user", 3)
    return [deal(rank=rank, num_workers=num_workers, **settings) for rank in range(num_workers)]


def listed(sampler, epoch=0):
    """The units of each step, as lists."""
    return [[unit.tolist() for unit in draw.units()] for draw in sampler.draws(epoch)]


def users_with(counts, generator):
    """Users of records, in a random order, numbered as they appear."""
    shuffled = generator.permutation(np.repeat(np.arange(len(counts)), counts))
    _, firsts, inverse = np.unique(shuffled, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(firsts))[inverse].astype(np.int32)


# ------------------------------------------------------------------------------ shapes and shares
@settings(max_examples=150)
@given(
    st.sampled_from(tuple(UNITS)),
    st.sampled_from(tuple(SAMPLERS)),
    st.lists(st.integers(1, 9), min_size=12, max_size=40),
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(1, 4),
    st.integers(0, 10**6),
)
def test_shapes(unit, sampler, counts, workers, lanes, size, seed):
    lanes = lanes if unit == "micro_batch" else 1
    batch_size = min(size, 12 // (workers * lanes)) * workers * lanes
    users = users_with(counts, np.random.default_rng(seed))
    places = len(counts) if unit == "user" else len(users)
    samplers = deal_all(
        workers, unit=unit, sampler=sampler, num_records=len(users), users=users,
        batch_size=batch_size, seed=seed, micro_batches_per_worker=lanes,
    )  # fmt: skip
    everybody = np.concatenate([s.indices for s in samplers])
    assert sorted(everybody) == list(range(len(users)))
    if unit == "utterance":
        shares = [len(dealt.indices) for dealt in samplers]
        assert max(shares) - min(shares) <= 1
    steps = samplers[0].steps_per_epoch
    if sampler == "poisson":
        assert abs(steps - places / batch_size) <= 0.5
    else:
        assert steps == places // workers // lanes // (batch_size // (workers * lanes))
    used = Counter()
    for dealt in samplers:
        assert isinstance(dealt, Sampler) and type(dealt) is KINDS[unit] and dealt.unit == unit
        assert dealt.sampler == sampler and dealt.num_units == places
        assert dealt.micro_batches_per_worker == lanes
        assert dealt.micro_batch_size == batch_size / (workers * lanes)
        assert dealt.sample_rate == (batch_size / places if sampler == "poisson" else 1.0)
        assert dealt.steps_per_epoch == steps
        assert (np.diff(dealt.indices) > 0).all()
        draws = list(dealt.draws(1))
        assert len(draws) == steps
        for draw in draws:
            assert draw.records.dtype == draw.sizes.dtype == np.int64
            assert draw.sizes.sum() == len(draw.records) == len(set(draw.records.tolist()))
            assert np.isin(draw.records, dealt.indices).all()
            for unit_, size_ in zip(draw.units(), draw.sizes):
                assert len(unit_) == size_
            if unit == "micro_batch":
                assert len(draw.sizes) == lanes
                assert sampler == "poisson" or (draw.sizes == dealt.micro_batch_size).all()
            else:
                assert sampler == "poisson" or len(draw.sizes) == dealt.micro_batch_size
            used.update(draw.records.tolist())
    assert sampler == "poisson" or max(used.values()) == 1


def test_a_draw_whose_sizes_do_not_fit_is_refused():
    with pytest.raises(ValueError, match="sizes for 3 records, not 2"):
        Draw(np.arange(2), np.array([1, 2]))
    assert Draw(np.arange(0), np.arange(0)).units() == []
    with pytest.raises(ValueError, match="the user of each of the 96 records"):
        deal(**{**SOUND_USERS, "users": None})


# ---------------------------------------------------------------------------------- micro-batches
@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("buckets", [0, 3])
def test_workers_and_lanes_draw_the_same_however_they_are_counted(sampler, buckets):
    if sampler == "poisson" and buckets:
        return
    wanted = {"unit": "micro_batch", "sampler": sampler, "num_records": 503, "batch_size": 24,
              "length_buckets": buckets, "lengths": np.arange(503) % 17,
              "adjacency": "zero_out"}  # fmt: skip
    drawn = []
    for workers, lanes in ((1, 8), (2, 4), (4, 2), (8, 1)):
        samplers = deal_all(workers, micro_batches_per_worker=lanes, **wanted)
        assert {s.micro_batch_size for s in samplers} == {3}
        steps = [[listed(s, epoch) for s in samplers] for epoch in (0, 4)]
        # epoch → step → lane by lane, worker by worker
        drawn.append([[sum(step, []) for step in zip(*epoch)] for epoch in steps])
    assert drawn[0] == drawn[1] == drawn[2] == drawn[3]
    assert len(drawn[0][0][0]) == 8 and drawn[0][0] != drawn[0][1]


def test_utterances_and_lanes_are_the_records_of_the_shards():
    for sampler, kind in (("shuffle", Shard), ("poisson", PoissonShard)):
        extra = {"insecure_fixed_seed": 3, "steps_per_epoch": 8} if sampler == "poisson" else {}
        dealt = deal_all(2, unit="utterance", sampler=sampler, num_records=100, batch_size=12)[1]
        shard = kind.deal(100, batch_size=12, num_workers=2, rank=1, seed=5, **extra)
        wanted = [[[record] for record in batch] for batch in shard.micro_batches(2)]
        assert listed(dealt, 2) == wanted
    (_, dealt) = deal_all(2, unit="micro_batch", sampler="shuffle", num_records=100,
                          batch_size=12, micro_batches_per_worker=3)  # fmt: skip
    for lane in range(3):
        shard = Shard.deal(100, batch_size=12, num_workers=6, rank=3 + lane, seed=5)
        wanted = [batch.tolist() for batch in shard.micro_batches(0)]
        assert [step[lane] for step in listed(dealt)] == wanted


# ------------------------------------------------------------------------------------------ users
@settings(max_examples=60)
@given(
    st.sampled_from(tuple(SAMPLERS)),
    st.lists(st.integers(1, 12), min_size=6, max_size=30),
    st.integers(1, 13),
    st.integers(1, 3),
    st.integers(0, 10**6),
)
def test_a_user_takes_part_with_at_most_k_utterances(sampler, counts, most, workers, seed):
    users = users_with(counts, np.random.default_rng(seed))
    has = np.bincount(users)
    samplers = deal_all(workers, unit="user", sampler=sampler, num_records=len(users), users=users,
                        batch_size=2 * workers, max_utterances_per_user=most)  # fmt: skip
    drawn = Counter()
    for dealt in samplers:
        assert dealt.max_utterances_per_user == most
        for step in listed(dealt):
            here = [users[unit].tolist() for unit in step]
            for records, who in zip(step, here):
                assert len(set(who)) == 1 and records == sorted(set(records))
                assert len(records) == min(most, has[who[0]])
            here = [who[0] for who in here]
            assert len(set(here)) == len(here)
            drawn.update(here)
    assert sampler == "poisson" or max(drawn.values()) == 1


def test_every_k_of_a_users_utterances_are_as_likely():
    """40 users of 5 utterances, K = 2; the draws repeat, so that this cannot fail by chance."""
    users = users_with([5] * 40, np.random.default_rng(0))
    (dealt,) = deal_all(1, unit="user", sampler="shuffle", num_records=200, users=users,
                        batch_size=40, max_utterances_per_user=2)  # fmt: skip
    rank_of = {r: i for u in range(40) for i, r in enumerate(np.flatnonzero(users == u))}
    pairs, joint = Counter(), Counter()
    for epoch in range(500):
        (step,) = listed(dealt, epoch)
        chosen = {users[unit[0]]: tuple(rank_of[r] for r in unit) for unit in step}
        pairs.update(chosen.values())
        joint.update((chosen[u], chosen[u + 1]) for u in range(0, 40, 2))
    assert set(pairs) == set(combinations(range(5), 2))
    assert stats.chisquare(list(pairs.values())).pvalue > 1e-3
    assert len(joint) == 100 and stats.chisquare(list(joint.values())).pvalue > 1e-3


SECRET = [("user", "shuffle"), ("utterance", "poisson")]


def first_draw(unit, sampler, *, seed=0, rank=0, epoch=0, fixed=None):
    """The sampler of one of two workers, and its first draw: half, or 20 of each user's 50."""
    wanted = {"batch_size": 200}
    if unit == "user":
        wanted = {"users": np.repeat(np.arange(8), 50), "batch_size": 8,
                  "max_utterances_per_user": 20}  # fmt: skip
    dealt = deal(unit=unit, sampler=sampler, num_records=400, rank=rank, num_workers=2,
                 seed=seed, insecure_fixed_seed=fixed, **wanted)  # fmt: skip
    return dealt, next(dealt.draws(epoch))


@pytest.mark.parametrize("unit, sampler", SECRET)
def test_choices_are_secret_and_no_seed_repeats_them(unit, sampler):
    """The same deal twice: each start, epoch and call chooses other utterances."""
    draws = [first_draw(unit, sampler, epoch=e)[1] for _ in range(2) for e in (0, 0, 1)]
    assert len({tuple(np.sort(draw.records)) for draw in draws}) == 6
    if unit == "user":  # their order alone is the seed's
        order = [[int(chosen[0]) // 50 for chosen in draw.units()] for draw in draws]
        assert order[0] == order[1] == order[3] == order[4]


@pytest.mark.parametrize(
    "unit, sampler, change",
    [*((*kind, change) for kind in SECRET for change in ("fixed", "rank", "epoch")),
     *(("utterance", "shuffle", change) for change in ("seed", "epoch"))],
)  # fmt: skip
def test_repeatable_draws_differ_by_seed_rank_and_epoch(unit, sampler, change):
    def places(**where):
        dealt, draw = first_draw(unit, sampler, **{"fixed": 1, **where})
        # without who has which records, and without the order of users
        return np.sort(np.searchsorted(dealt.indices, draw.records) % 50).tolist()

    assert places() == places()
    assert places(**{change: 2 if change == "fixed" else 1}) != places()


def test_users_under_poisson_are_drawn_as_places_are():
    users = users_with([3] * 50, np.random.default_rng(1))
    (dealt,) = deal_all(1, unit="user", sampler="poisson", num_records=150, users=users,
                        batch_size=7)  # fmt: skip
    shard = PoissonShard.deal(
        50, batch_size=7, num_workers=1, rank=0, seed=5, steps_per_epoch=7, insecure_fixed_seed=3
    )
    wanted = [batch.tolist() for batch in shard.micro_batches(2)]
    assert [[users[unit[0]] for unit in step] for step in listed(dealt, 2)] == wanted


# ------------------------------------------------------------------------------------------- gaps
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_an_empty_place_moves_nothing_else(unit, sampler, generator):
    users = users_with(generator.integers(1, 9, 60), generator)
    places = 60 if unit == "user" else len(users)
    empty = generator.choice(places, places // 4, replace=False)
    lanes = 2 if unit == "micro_batch" else 1
    for dealt in deal_all(2, unit=unit, sampler=sampler, num_records=len(users), users=users,
                          batch_size=12, micro_batches_per_worker=lanes):  # fmt: skip
        gapped = dealt.without(empty[:3]).without(empty[2:])
        assert type(gapped) is type(dealt)
        for public in ("steps_per_epoch", "micro_batch_size", "num_units", "sample_rate"):
            assert getattr(gapped, public) == getattr(dealt, public)

        def is_there(record):
            return (users[record] if unit == "user" else record) not in empty

        assert gapped.indices.tolist() == [r for r in dealt.indices.tolist() if is_there(r)]
        wanted = [[[r for r in u if is_there(r)] for u in step] for step in listed(dealt, 1)]
        if unit != "micro_batch":
            wanted = [[u for u in step if u] for step in wanted]
        assert listed(gapped, 1) == wanted


# --------------------------------------------------------------------------------------- refusals
SOUND = {"unit": "micro_batch", "sampler": "shuffle", "num_records": 96, "batch_size": 16,
         "rank": 0, "num_workers": 2, "micro_batches_per_worker": 4, "seed": 0}  # fmt: skip
SOUND_USERS = {**SOUND, "unit": "user", "batch_size": 4, "micro_batches_per_worker": 1,
               "users": np.repeat(np.arange(12), 8), "max_utterances_per_user": 3}  # fmt: skip


def test_an_epoch_of_given_steps_draws_with_the_same_probability():
    settings = {"unit": "utterance", "sampler": "poisson", "num_records": 100, "batch_size": 12}
    (usual,), (short,) = deal_all(1, **settings), deal_all(1, **settings, steps_per_epoch=3)
    assert (usual.steps_per_epoch, short.steps_per_epoch) == (8, 3)
    assert short.sample_rate == usual.sample_rate == 0.12
    assert listed(short, 1) == listed(usual, 1)[:3]


@pytest.mark.parametrize(
    ("sound", "wanted", "complaint"),
    [
        (SOUND, {"batch_size": 12}, r"\.batch_size: 12 is not a multiple of 8 \(2 workers with "
                                    r"privacy\.micro_batches_per_worker: 4\)"),
        (SOUND, {"unit": "utterance", "batch_size": 13, "micro_batches_per_worker": 1},
         r"\.batch_size: 13 is not a multiple of 2 \(2 workers\)"),
        (SOUND, {"batch_size": 104}, r"\.batch_size: 104 does not lie between 1 and the 96 utt"),
        (SOUND, {"num_records": 7, "sampler": "poisson", "batch_size": 5},
         r"7 utterances are too few for 2 workers with privacy\.micro_batches_per_worker: 4"),
        (SOUND, {"steps_per_epoch": 3}, r"\.steps_per_epoch: 3 steps .* privacy\.sampler: shuffle"),
        (SOUND, {"rank": 2}, "rank 2 is not one of 2 workers"),
        (SOUND, {"length_buckets": 3}, r"\.length_buckets: .* privacy\.adjacency: zero_out"),
        (SOUND, {"length_buckets": 3, "sampler": "poisson"}, r"\.length_buckets: .*poisson"),
        (SOUND, {"length_buckets": 3, "adjacency": "zero_out"}, "the length of each record"),
        (SOUND, {"length_buckets": 3, "adjacency": "zero_out", "lengths": [1] + [9] * 95},
         "too many"),
        (SOUND_USERS, {"max_utterances_per_user": None}, r"\.max_utterances_per_user must be ≥ 1"),
        (SOUND_USERS, {"length_buckets": 2}, r"\.length_buckets: 2 .* draws users"),
        (SOUND_USERS, {"batch_size": 14}, r"\.batch_size: 14 .* between 1 and the 12 users"),
    ],
)  # fmt: skip
def test_what_cannot_be_dealt_names_its_key(sound, wanted, complaint):
    one_sentence(complaint, deal, **{**sound, **wanted})


def test_a_rate_of_numpy_numbers_is_the_rate_that_is_drawn():
    """An int64 that is shifted by 64 bits is 0, and the least word below it the largest."""
    sampler = deal(
        unit="utterance", sampler="poisson", num_records=4000, batch_size=np.int64(40),
        rank=0, num_workers=1, seed=0,
    )  # fmt: skip
    drawn = [len(draw.sizes) for draw in sampler.draws(0)]
    assert 25 < np.mean(drawn) < 55 and sampler.sample_rate == 0.01
