"""The facade on two workers: one release of the mean, the same weights, one ledger."""

import mxnet as mx
import numpy as np
import pytest
from mxnet import gluon
from support.own_networks import (
    BATCH,
    clipped_sum_by_hand,
    mlp,
    ready,
    training,
    units_of,
    vectors,
    weights_of,
)
from support.workers import run_workers

from edp_mx.dp.accounting.ledger import read_ledger
from edp_mx.errors import UserError
from edp_mx.runtime import distributed

C = 0.4


def train(seed, folder):
    """Runs on a worker: without noise, what it drew and what the weights became, step by step."""
    rank = distributed.start().rank
    net = ready(mlp(), np.random.default_rng([seed, rank]))  # rank 0's weights are everybody's
    dataset = vectors(np.random.default_rng(seed))
    private = training(
        net, num_workers=2, max_grad_norm=C, epochs=2, folder=folder, noise_multiplier=0.0
    )
    seen = []
    for batch in private.batches(dataset):
        before = weights_of(net)
        private.step(batch)
        seen.append((units_of(batch), before, weights_of(net)))
    return seen, private.epsilon


def test_two_workers_release_the_mean_of_all_clipped_gradients(seed, tmp_path):
    (first, epsilon), (second, other) = run_workers(train, 2, seed, str(tmp_path / "kept"))
    dataset = vectors(np.random.default_rng(seed))
    net = ready(mlp(), np.random.default_rng(seed))
    net(mx.nd.array(dataset[:2][0]))  # settles its shapes
    places = [p.data().size for p in net.collect_params().values()]
    for (mine, before, after), (theirs, *same) in zip(first, second):
        assert np.array_equal(before, same[0]) and np.array_equal(after, same[1])
        for part, parameter in zip(
            np.split(before, np.cumsum(places)[:-1]), net.collect_params().values()
        ):
            parameter.set_data(part.reshape(parameter.shape))
        total = clipped_sum_by_hand(net, dataset, mine + theirs, max_grad_norm=C)
        assert np.linalg.norm(before - after - total / BATCH) <= 1e-5 * np.linalg.norm(total)
    drawn = [{r for units, *_ in seen for unit in units for r in unit} for seen in (first, second)]
    assert not drawn[0] & drawn[1]  # each worker has its share
    assert len(first) == len(second) == 6 and epsilon == other == np.inf
    assert len(read_ledger(tmp_path / "kept" / "privacy_ledger.jsonl").entries) == 2


def refused(seed, other):
    """Runs on a worker, of which one deals otherwise: what the facade says of that."""
    rank = distributed.start().rank
    dataset, settings = vectors(np.random.default_rng(seed)), {}
    if other == "order":
        order = np.random.default_rng([seed, rank]).permutation(len(dataset))
        dataset = gluon.data.ArrayDataset(*(each[order] for each in dataset._data))
    if other == "users":
        users = [i % 12 for i in range(len(dataset))]
        settings = {"unit": "user", "users": users[:: 1 - 2 * rank], "num_examples": 12,
                    "batch_size": 6}  # fmt: skip
    private = training(ready(mlp(), np.random.default_rng(seed)), num_workers=2, **settings)
    private._seed = rank if other == "seed" else 0
    try:
        next(private.batches(dataset))
    except UserError as error:
        return str(error)


@pytest.mark.parametrize("other", ["seed", "order", "users"])
def test_workers_that_might_draw_one_example_twice_are_refused(other, seed):
    for said in run_workers(refused, 2, seed, other):
        assert "the workers disagree on the seed, or the examples, their order and" in said
