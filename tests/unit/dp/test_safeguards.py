"""What the library watches in networks that are not its own: rows, randomness, state."""

import logging
import random

import mxnet as mx
import numpy as np
import pytest
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn
from support.own_networks import N, mlp, ready, training, vectors, weights_of
from support.refusals import one_sentence

from edp_mx.dp.accounting.ledger import LEDGER
from edp_mx.dp.mixing import tried_of
from edp_mx.dp.privacy.ghost.rows import refuse_others_rows, weights_apart
from edp_mx.dp.safeguards import secret_randomness
from edp_mx.errors import UserError

C, WIDTH = 0.5, 4


class OfRows(nn.Block):
    """A body below Python code that arranges its rows."""

    def __init__(self):
        super().__init__(prefix="rows_")
        with self.name_scope():
            self.body = mlp()


class Doubled(OfRows):
    """Reads each batch twice while it trains, the copies below all examples, as R-Drop does."""

    def forward(self, x):
        if not autograd.is_training():
            return self.body(x)
        first, second = nd.split(self.body(nd.concat(x, x, dim=0)), 2, axis=0)
        return (first + second) / 2


class Windows(OfRows):
    """Reads long examples in windows, all examples' first windows above all second ones."""

    def forward(self, x):
        count = x.shape[1] // WIDTH
        rows = nd.concat(*(x[:, i * WIDTH : (i + 1) * WIDTH] for i in range(count)), dim=0)
        return self.body(rows).reshape((count, len(x), -1)).mean(axis=0)


class Sorted(OfRows):
    """Reads the examples in the order of their first number, and returns them in their own."""

    def forward(self, x):
        order = x[:, 0].asnumpy().argsort(kind="stable")
        made = self.body(nd.take(x, nd.array(order)))
        return nd.take(made, nd.array(order.argsort()))


def steps(private, dataset):
    """The clipped sum of each step."""
    for batch in private.batches(dataset):
        before = weights_of(private.net)
        private.step(batch)
        yield before - weights_of(private.net)


def whole(**settings):
    """Settings of steps that take all examples."""
    return {"sampler": "shuffle", "batch_size": N, "max_grad_norm": C, **settings}


def padded(items):
    """A batch of examples of one or two windows."""
    longest = max(len(values) for values, _ in items)
    rows = [np.pad(values, (0, longest - len(values))) for values, _ in items]
    return np.array(rows), np.array([label for _, label in items], np.float32)


def test_weights_tell_any_two_units_apart():
    for count in (1, 2, 63, 64, 65, 200):
        sets = list(weights_apart(count))
        assert len({tuple(weights[u] for weights in sets) for u in range(count)}) == count
        assert len(sets) == (1 if count <= 64 else 2)


def test_a_row_of_another_unit_or_of_two_is_told():
    squares, (weights,) = np.array([1.0, 4.0, 9.0, 0.0]), weights_apart(2)
    right = squares * np.repeat(weights.astype(float) ** 2, 2)
    refuse_others_rows([("a", squares)], [("a", right)], weights)
    for place in (0, 1, 2):
        wrong = right.copy()
        wrong[place] *= 4
        one_sentence(
            "a reads the rows", refuse_others_rows, [("a", squares)], [("a", wrong)], weights
        )


def test_a_network_that_stacks_its_rows_in_training_alone_is_trained_by_the_loop(generator, caplog):
    dataset = [(values * 10, label) for values, label in vectors(generator)]
    private = training(ready(Doubled(), generator), **whole())
    (moved,) = steps(private, dataset)
    assert private.plan.clipping == "loop" and "another order" in caplog.text
    assert np.linalg.norm(moved) * N <= N * C


@pytest.mark.parametrize("kind", [Windows, Sorted])
def test_rows_in_another_order_that_only_some_batches_have_are_refused_in_the_step(kind, generator):
    dataset = [(np.sort(values), label) for values, label in vectors(generator)]
    tried = set(tried_of(N).tolist())
    for place in range(N):  # what is tried at the start comes in order, and short
        first = float(place) if place in tried else float(-place)
        length = WIDTH if place in tried or kind is Sorted else 2 * WIDTH
        dataset[place] = (np.resize(dataset[place][0], length), dataset[place][1])
        dataset[place][0][0] = first
    given = {"batchify_fn": padded, **whole()}
    private = training(ready(kind(), generator), **given)
    with pytest.raises(UserError, match='another order .*; give make_plan clipping="loop"$'):
        list(steps(private, dataset))
    private = training(ready(kind(), generator), **given, clipping="loop")
    assert len(list(steps(private, dataset))) == 1


def test_windows_of_an_example_below_one_another_keep_ghost_clipping(generator):
    class Own(Windows):
        def forward(self, x):
            return self.body(x.reshape((-1, WIDTH))).reshape((len(x), -1, 3)).mean(axis=1)

    dataset = [(np.resize(values, 2 * WIDTH), label) for values, label in vectors(generator)]
    found = []
    for clipping in ("ghost", "loop"):
        mx.random.seed(1)
        net = Own()
        net.initialize(mx.init.Uniform(0.5))
        private = training(net, **whole(), clipping=clipping)
        found += steps(private, dataset)
        assert private.plan.clipping == clipping
    np.testing.assert_allclose(*found, rtol=1e-4, atol=1e-6)


def test_max_pooling_has_a_rule_whatever_mxnet_s_gradient_of_it_is_in_predict_mode(generator):
    dataset = [(np.resize(values, (8, 4)), label) for values, label in vectors(generator)]
    net = nn.HybridSequential(prefix="pooled_")
    with net.name_scope():
        net.add(nn.Conv1D(5, 2, in_channels=8), nn.GlobalMaxPool1D(), nn.Dense(3))
    private = training(ready(net, generator), **whole())
    assert len(list(steps(private, dataset))) == 1 and private.plan.clipping == "ghost"


class Looking(nn.HybridBlock):
    """Looks at a shape, which a traced graph has not."""

    def __init__(self):
        super().__init__(prefix="looking_")
        with self.name_scope():
            self.dense = nn.Dense(3, in_units=4)

    def hybrid_forward(self, F, x):  # noqa: N803 (Gluon's name)
        return self.dense(x) * x.shape[1]


def test_a_network_that_cannot_be_traced_is_trained_by_the_loop(generator, caplog):
    private = training(ready(Looking(), generator), **whole())
    assert len(list(steps(private, vectors(generator)))) == 1 and private.plan.clipping == "loop"
    assert "AttributeError" in caplog.text


def test_random_numbers_are_secret_in_it_and_go_on_behind_it():
    np.random.seed(3)
    random.seed(3)
    expected = np.random.random(), random.random()
    np.random.seed(3)
    random.seed(3)
    inside = []
    for _ in range(2):
        with secret_randomness():
            inside.append((np.random.random(), random.random()))
    assert (np.random.random(), random.random()) == expected
    assert len({*np.ravel(inside), *expected}) == 6


def test_an_augmentation_is_not_drawn_from_the_program_s_seed(generator):
    rows, seen = list(vectors(generator)), []

    class Shifted(list):
        def __getitem__(self, place):
            seen.append(np.random.random())
            return rows[place]

    for _ in range(2):
        np.random.seed(0)
        for _ in steps(training(ready(mlp(), generator), **whole()), Shifted(rows)):
            pass
    assert len(set(seen)) > len(seen) // 2  # what is tried at the start is of the seed


class Kept(nn.Block):
    """Keeps a running mean: an attribute that only predictions read, or a late parameter."""

    def __init__(self, *, late):
        super().__init__(prefix="kept_")
        self.late, self.passes, self.mean = late, 0, nd.zeros(4)
        with self.name_scope():
            self.dense = nn.Dense(3, in_units=4)
            self.frozen = self.params.get("mean", shape=(4,), init="zeros", grad_req="null")

    def forward(self, x):
        self.passes += autograd.is_training()
        if autograd.is_training() and not self.late:
            self.mean = (0.9 * self.mean + 0.1 * x.mean(axis=0)).detach()
        if autograd.is_training() and self.passes > 100 and self.late:
            self.frozen.set_data(0.9 * self.frozen.data() + 0.1 * x.mean(axis=0))
        return self.dense(x if autograd.is_training() else x - self.mean - self.frozen.data())


def test_a_state_that_only_predictions_read_is_refused(generator):
    private = training(ready(Kept(late=False), generator), **whole())
    one_sentence("depends on examples before it", list, steps(private, vectors(generator)))


def test_a_frozen_parameter_that_changes_later_is_not_kept(generator, tmp_path):
    private = training(ready(Kept(late=True), generator), **whole(epochs=150), folder=tmp_path)
    one_sentence("changed kept_mean", list, steps(private, vectors(generator)))
    found = np.load(tmp_path / "checkpoint.npz")
    assert private.epoch > 1 and not found["weights/kept_mean"].any()


def test_a_frozen_part_that_a_start_draws_anew_is_the_checkpoint_s(generator, tmp_path):
    for epochs in (1, 1):
        net = ready(Kept(late=True), generator)
        net.frozen.set_data(nd.array(generator.normal(size=4)))
        private = training(net, **whole(epochs=2), folder=tmp_path)
        for batch in private.batches(vectors(np.random.default_rng(0)), epochs=epochs):
            private.step(batch)
    assert private.epoch == 2


def test_weights_that_diverged_are_not_kept(generator, tmp_path):
    dataset = vectors(generator)
    private = training(ready(mlp(), generator), **whole(epochs=9), folder=tmp_path)
    taken = steps(private, dataset)
    next(taken)
    weight = private.net[0].weight
    weight.set_data(weight.data() * 1e30 * 1e30)  # as a rate that is too large makes them
    one_sentence("no longer finite: the training has diverged", list, taken)
    assert np.isfinite(np.load(tmp_path / "checkpoint.npz")["weights/mlp_dense0_weight"]).all()


def test_what_the_loss_does_not_use_is_refused_before_the_ledger(generator, tmp_path):
    class Unused(Looking):
        def hybrid_forward(self, F, x):  # noqa: N803
            return self.dense(x)

    net = Unused()
    with net.name_scope():
        net.head = nn.Dense(2, in_units=4)
    private = training(ready(net, generator), **whole(), folder=tmp_path)
    one_sentence("does not use looking_dense1_bias", list, steps(private, vectors(generator)))
    assert not (tmp_path / LEDGER).exists()


def test_a_bias_that_mxnet_gives_no_gradient_is_refused(generator):
    net = ready(mlp(), generator)
    net(nd.zeros((1, 4)))
    net[0].weight.grad_req = "null"
    one_sentence("a trained bias and a frozen weight", training, net)


def test_a_budget_that_ends_within_an_epoch_leaves_the_weights_of_its_end(generator, tmp_path):
    dataset = vectors(generator)
    given = {"noise_multiplier": 1.0, "max_epsilon": 4.0, "delta": 1e-3, "steps_per_epoch": 500}
    private = training(ready(mlp(), generator), folder=tmp_path, **given)
    assert 0 < len(list(steps(private, dataset))) < 500
    again = training(ready(mlp(), generator), folder=tmp_path, **given)
    assert not list(steps(again, dataset)) and again.epsilon == private.epsilon
    assert (weights_of(again.net) == weights_of(private.net)).all()


class Branching(gluon.HybridBlock):
    """Adds something to its scores while it trains, as a margin or an auxiliary head does."""

    def __init__(self):
        super().__init__(prefix="branching_")
        with self.name_scope():
            self.body = mlp()
            self.aside = nn.Dense(3)

    def hybrid_forward(self, F, x):
        if autograd.is_training():
            return self.body(x) + self.aside(x)
        return self.body(x) + 0 * self.aside(x)


def test_a_branch_of_training_alone_is_what_is_trained(generator):
    dataset, net = vectors(generator), ready(Branching(), generator)
    net(nd.zeros((1, WIDTH)))
    start = net.aside.weight.data().asnumpy()
    list(steps(training(net, **whole()), dataset))
    assert np.abs(net.aside.weight.data().asnumpy() - start).max() > 1e-3


def test_a_loss_with_parameters_of_its_own_is_refused(generator):
    class Scaled(gluon.loss.SoftmaxCrossEntropyLoss):
        def __init__(self, net=None):
            super().__init__(prefix="scaled_")
            with self.name_scope():
                self.scores = nn.Dense(3) if net is None else net

    net = ready(mlp(), generator)
    one_sentence("scaled_dense0_weight is a parameter of the loss", training, net, loss=Scaled())
    training(net, loss=Scaled(net))


def test_an_epoch_that_is_repeated_is_told(generator, caplog):
    dataset = vectors(generator)
    private = training(ready(mlp(), generator), noise_multiplier=1.0, epochs=2)
    with caplog.at_level(logging.WARNING):
        for batch in private.batches(dataset):
            private.step(batch)
            break
        assert "counts again" not in caplog.text
        rest = steps(private, dataset)
        next(rest)
    assert f"epoch 1 counts again: epsilon is {private.epsilon:.3g} by its end" in caplog.text


def test_a_second_training_of_a_network_is_told(generator, caplog):
    net, dataset = ready(mlp(), generator), vectors(generator)
    for times in (0, 1):
        list(steps(training(net, **whole()), dataset))
        assert caplog.text.count("this network was trained before") == times


def test_errors_speak_of_what_the_library_is_given(generator):
    private = training(ready(mlp(), generator))
    few = [vectors(generator)[place] for place in range(2)]
    one_sentence(
        "^batch_size: 8 does not lie between 1 and the 2 examples", list, steps(private, few)
    )
