"""Ghost clipping of whole models, against the loop and against autograd."""

import mxnet as mx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mxnet import autograd, gluon
from mxnet.gluon import nn, rnn
from support.prescribed import taken
from support.releases import release_with

from edp_mx.dp.privacy.flat import FlatGradients
from edp_mx.dp.privacy.ghost.check import refuse_wrong
from edp_mx.dp.privacy.ghost.clipping import GhostClipping
from edp_mx.dp.privacy.layers import layers_of
from edp_mx.dp.privacy.norm_clipping import LoopClipping
from edp_mx.errors import UserError
from tests.support.models import FAMILIES, part, random_batch, tiny

LENGTHS = [5, 1, 3, 7]
NO_CLIPPING = 1e9


def ghost_for(model, *, max_grad_norm=1.0, scales=None, chunk_size=64, rule="abadi"):
    """The clipping and the flat gradients behind it."""
    flat = FlatGradients(layers_of(model))
    scales = [1.0] * len(flat.layers) if scales is None else scales
    release = release_with(max_grad_norm=max_grad_norm, layer_scales=scales, clip_rule=rule)
    common = {"flat": flat, "release": release}
    ghost = GhostClipping(network=model, chunk_size=chunk_size, **common)
    return ghost, LoopClipping(**common), flat


def by_loop(loop, model, batch, rows=1):
    """The clipped sum, one unit of so many rows at a time."""
    starts = range(0, len(batch.lengths), rows)
    return taken(
        loop.clip(
            [
                lambda s=s: model.loss(part(batch, np.arange(s, s + rows))).sum().reshape((1,))
                for s in starts
            ]
        )
    )


def assert_same_sum(found, expected):
    """To 1e-5 of the largest entry."""
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


def test_by_the_automatic_rule_each_gradient_gets_nearly_the_norm_c(generator):
    model, c = tiny("clc"), 0.3
    batch = random_batch(generator, LENGTHS, "clc")
    ghost, loop, _ = ghost_for(model, max_grad_norm=c, rule="automatic")
    assert_same_sum(taken(ghost.clip([lambda: model.loss(batch)])), by_loop(loop, model, batch))
    for row in range(len(LENGTHS)):
        alone = part(batch, [row])
        norm = np.linalg.norm(taken(ghost.clip([lambda alone=alone: model.loss(alone)])))
        assert 0.95 * c < norm < c


@pytest.mark.parametrize("family", FAMILIES)
def test_norms_and_sum_are_those_of_the_same_dropout_masks(family, generator):
    model = tiny(family, dropout=0.3)
    batch = random_batch(generator, LENGTHS, family)

    def losses():
        mx.random.seed(11)
        return model.loss(batch)

    ghost, loop, _ = ghost_for(model)
    found = taken(ghost.clip([losses]))
    alone = [lambda row=row: losses()[row : row + 1] for row in range(len(LENGTHS))]
    assert_same_sum(found, taken(loop.clip(alone)))
    mx.random.seed(12)  # other masks, to show that masks matter
    other = taken(ghost.clip([lambda: model.loss(batch)]))
    assert np.abs(other - found).max() > 1e-2 * np.abs(found).max()


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("rows, spoilt, bad", [(1, 1, np.inf), (2, 3, np.nan)])
def test_a_unit_that_is_not_finite_adds_nothing(family, rows, spoilt, bad, generator):
    model = tiny(family)
    batch = random_batch(generator, [*LENGTHS, 2, 6], family)
    ghost, loop, _ = ghost_for(model)
    kept = [row for row in range(6) if row // rows != spoilt // rows]
    expected = by_loop(loop, model, part(batch, kept), rows)
    poison = mx.nd.array([bad if row == spoilt else 1 for row in range(6)])
    found = ghost.clip([lambda: (model.loss(batch) * poison).reshape((-1, rows)).sum(axis=1)])
    assert_same_sum(taken(found), expected)
    assert ghost.statistics.non_finite == 1


@pytest.mark.parametrize(("family", "frozen"), [
    ("clc", "words_weight"), ("clc", "forward0"), ("clc", "h2h_bias"), ("bert", "query_weight"),
    ("bert", "position"), ("bert", "gamma"), ("bert", "embed"),
])  # fmt: skip
def test_frozen_parameters_are_left_out(family, frozen, generator):
    model = tiny(family)
    for name, parameter in model.collect_params().items():
        if frozen in name:
            parameter.grad_req = "null"
    batch = random_batch(generator, LENGTHS, family)
    ghost, loop, flat = ghost_for(model)
    expected = by_loop(loop, model, batch)
    found = taken(ghost.clip([lambda: model.loss(batch)]))
    assert not any(frozen in name for name in flat.views(found))
    assert_same_sum(found, expected)


def test_the_network_is_left_as_it_was(generator):
    model = tiny("clc")
    batch = random_batch(generator, LENGTHS, "clc")
    before = model.loss(batch).asnumpy()
    ghost, _, _ = ghost_for(model)
    with pytest.raises(ZeroDivisionError):
        ghost.clip([lambda: 1 / 0])
    ghost.clip([lambda: model.loss(batch)])
    np.testing.assert_array_equal(model.loss(batch).asnumpy(), before)
    assert "forward" not in vars(model.encoder)


def drawn(network):
    """The network with random weights."""
    network.initialize(mx.init.Normal(1))
    return network


class Flawed(gluon.HybridBlock):
    """A dense layer and one thing more that ghost clipping cannot follow."""

    def __init__(self, flaw):
        super().__init__(prefix="flawed_")
        self._flaw = flaw
        with self.name_scope():
            self.dense = nn.Dense(3, in_units=3, flatten=False, prefix="dense_")
            self.scale = self.params.get("scale", shape=(1, 3))

    def hybrid_forward(self, F, x, scale):
        """Shapes: (N, 3) → (N,)."""
        y = self.dense(x)
        if self._flaw == "no rule":
            y = F.broadcast_mul(y, scale)
        elif self._flaw == "tied":
            y = self.dense(y) + F.FullyConnected(x, F.reshape(scale, (1, 3)), no_bias=True,
                                                 num_hidden=1)  # fmt: skip
        return F.sum(y, axis=1)


@pytest.mark.parametrize(
    ("flaw", "message"),
    [
        ("no rule", "is a broadcast_mul, for which ghost clipping has no rule"),
        ("tied", "more than one operator reads it"),
        ("unused", "flawed_scale: nothing reads it"),
    ],
)
def test_what_has_no_rule_is_refused_by_name(flaw, message):
    with pytest.raises(UserError, match=message):
        ghost_for(drawn(Flawed(flaw)))


def test_a_parameter_outside_hybrid_blocks_is_refused():
    network = gluon.Block(prefix="odd_")
    network.weight = network.params.get("weight", shape=(3, 3))
    with pytest.raises(UserError, match="odd_weight is in no hybrid block"):
        ghost_for(drawn(network))


class Blocks(gluon.Block):
    """Several blocks, and how they make the losses of x (N, T, 3)."""

    def __init__(self, losses, **blocks):
        super().__init__(prefix="blocks_")
        self._losses = losses
        for name, block in blocks.items():
            setattr(self, name, block)

    def forward(self, x):
        """Shapes: (N, T, 3) → (N,)."""
        return self._losses(self, x)


class Tagger(gluon.HybridBlock):
    """An LSTM, over what a dense layer gives if there is one."""

    def __init__(self, *, dense):
        super().__init__(prefix="tagger_")
        with self.name_scope():
            self.dense = None
            if dense:
                self.dense = nn.Dense(3, in_units=3, flatten=False, prefix="dense_")
            self.lstm = rnn.LSTM(4, input_size=3, prefix="lstm_")

    def hybrid_forward(self, F, x):
        """Shapes: (N, T, 3) → (N, T, 4)."""
        x = x if self.dense is None else self.dense(x)
        return F.swapaxes(self.lstm(F.swapaxes(x, 0, 1)), 0, 1)


def dense(prefix):
    """A layer over positions."""
    return nn.Dense(3, in_units=3, flatten=False, prefix=prefix)


def squares(values):
    """Shapes: (N, …) → (N,)."""
    return mx.nd.square(values).reshape((0, -1)).sum(axis=1)


def assert_as_the_loop(network, generator):
    """For three examples (T, 3)."""
    ghost, loop, _ = ghost_for(network)
    x = mx.nd.array(generator.normal(size=(3, 4, 3)))
    expected = taken(loop.clip([lambda row=row: network(x[row : row + 1]) for row in range(3)]))
    assert_same_sum(taken(ghost.clip([lambda: network(x)])), expected)


def test_a_gradient_of_earlier_examples_is_never_clipped_again(generator):
    reads_both = [True, False]

    def losses(network, x):
        first, second = network.first(x), network.second(x)
        return squares(first) + squares(second) if reads_both.pop(0) else squares(first)

    network = Blocks(losses, first=dense("first_"), second=dense("second_"))
    ghost, _, _ = ghost_for(drawn(network))
    x = mx.nd.array(generator.normal(size=(2, 4, 3)))
    ghost.clip([lambda: network(x)])
    with pytest.raises(UserError, match="the loss does not use second_fwd"):
        ghost.clip([lambda: network(x)])


def without_the_lstm(network, x):
    network.tagger(x)
    return squares(network.below(x))


def around_the_lstm(network, x):
    below = network.below(x)
    return squares(below) + squares(network.tagger(below))


@pytest.mark.parametrize(
    "losses, message",
    [
        (without_the_lstm, "the loss does not use tagger_lstm"),
        (around_the_lstm, "tagger has an LSTM, and the loss reads what lies below"),
        (lambda network, x: squares(network.below(network.below(x))), "below is used twice"),
    ],
)
def test_a_loss_that_cannot_be_followed_is_refused(losses, message, generator):
    network = Blocks(losses, below=dense("below_"), tagger=Tagger(dense=False))
    ghost, _, _ = ghost_for(drawn(network))
    with pytest.raises(UserError, match=message):
        ghost.clip([lambda: network(mx.nd.array(generator.normal(size=(2, 4, 3))))])


@pytest.mark.parametrize("frozen", [None, "dense"])
def test_an_lstm_with_nothing_to_train_below_it(frozen, generator):
    network = Blocks(
        lambda network, x: squares(network.tagger(x)), tagger=Tagger(dense=frozen is not None)
    )
    network.initialize(mx.init.Normal(1))
    if frozen:
        network.collect_params(".*dense_.*").setattr("grad_req", "null")
    assert_as_the_loop(network, generator)


class OverCharacters(Tagger):
    """An LSTM whose sequences are positions, not examples."""

    def hybrid_forward(self, F, x):
        """Shapes: (N, T, 3) → (N, T, 4)."""
        rows = F.expand_dims(F.reshape(self.dense(x), shape=(-3, 0)), axis=0)  # (1, N·T, 3)
        return F.reshape(self.lstm(rows), shape=(-1, 4, 4))


def test_an_lstm_over_several_sequences_an_example(generator):
    network = Blocks(lambda network, x: squares(network.tagger(x)), tagger=OverCharacters(dense=1))
    assert_as_the_loop(drawn(network), generator)


@pytest.mark.parametrize("dense", [True, False])
def test_rows_that_are_no_whole_number_an_example_are_refused(dense, generator):
    network = Blocks(lambda network, x: squares(network.tagger(x)), tagger=OverCharacters(dense=1))
    network.initialize(mx.init.Normal(1))
    if not dense:  # then the LSTM is the first
        network.collect_params(".*dense_.*").setattr("grad_req", "null")
    ghost, _, _ = ghost_for(network)
    x = mx.nd.array(generator.normal(size=(2, 4, 3)))
    name = "dense" if dense else "lstm"
    with pytest.raises(UserError, match=f"{name}.* reads [28] rows of 3 examples"):
        ghost.clip([lambda: _three(network(x))])


def _three(losses):
    """Three losses of two examples, which no network has."""
    return mx.nd.concat(losses, losses[:1], dim=0)


def test_ids_outside_a_table_are_refused():
    network = nn.HybridSequential(prefix="table_")
    with network.name_scope():
        network.add(nn.Embedding(3, 2))
    network.initialize(mx.init.One())
    ghost, _, _ = ghost_for(network)
    with pytest.raises(UserError, match="the rows 2 to 4 of an embedding with 3 rows"):
        ghost.clip([lambda: squares(network(mx.nd.array([[2, 3, 4]])).sum(axis=1))])


class Read(gluon.HybridBlock):
    """A product with something made of a weight (3, 3)."""

    def __init__(self, made):
        super().__init__(prefix="read_")
        self._made = made
        with self.name_scope():
            self.weight = self.params.get("weight", shape=(3, 3))

    def hybrid_forward(self, F, x, weight):
        """Shapes: (N, T, 3) → (N,)."""
        made = self._made(F, weight)
        y = F.FullyConnected(x, made, num_hidden=3, no_bias=True, flatten=False)
        return F.sum(F.reshape(F.square(y), shape=(0, -1)), axis=1)


@pytest.mark.parametrize(
    "made",
    [
        lambda F, w: F.relu(w),
        lambda F, w: 2 * w,
        lambda F, w: w * w,
        lambda F, w: F.transpose(w),
        lambda F, w: F.BlockGrad(w),
        lambda F, w: F.concat(w, w, dim=0),
        lambda F, w: F.slice_axis(w, axis=0, begin=0, end=2),
    ],
)
def test_what_is_more_than_a_weights_rows_is_refused(made):
    with pytest.raises(UserError, match="clipping has no rule .it reads read_weight"):
        ghost_for(drawn(Read(made)))


@pytest.mark.parametrize(
    "made", [lambda F, w: F.reverse(w, axis=0), lambda F, w: F.reshape(w, shape=(-1, 3))]
)
def test_a_weight_whose_rows_are_put_in_another_order(made, generator):
    assert_as_the_loop(drawn(Read(made)), generator)


class Interleaved(gluon.HybridBlock):
    """A dense layer over rows of which those of one example do not follow one another."""

    def __init__(self):
        super().__init__(prefix="interleaved_")
        with self.name_scope():
            self.dense = nn.Dense(2, in_units=2, prefix="dense_")

    def hybrid_forward(self, F, x):
        """Shapes: (N, 3, 2) → (N,)."""
        rows = F.reshape(F.swapaxes(x, 0, 1), shape=(-3, 0))  # (3·N, 2)
        y = F.reshape(F.square(self.dense(rows)), shape=(3, -1, 2))  # (3, N, 2)
        return F.sum(y, axis=(0, 2))


def test_rows_that_are_interleaved_are_noticed(generator):
    network = Interleaved()
    ghost, _, _ = ghost_for(drawn(network))
    x = mx.nd.array(generator.normal(size=(4, 3, 2)))
    with pytest.raises(UserError, match="disagree on this network"):
        refuse_wrong(
            ghost,
            together=[lambda: network(x)],
            alone=[lambda row=row: network(x[row : row + 1]) for row in range(4)],
        )


class Weighted(gluon.HybridBlock):
    """A dense layer whose outputs are weighted by an optional input, as by a mask."""

    def __init__(self):
        super().__init__(prefix="weighted_")
        with self.name_scope():
            self.dense = nn.Dense(2, in_units=3)

    def hybrid_forward(self, F, x, before=None, weights=None):
        outputs = self.dense(x)
        return outputs if weights is None else F.broadcast_mul(outputs, weights)


def test_an_optional_input_is_passed_on_and_may_be_left_out(generator):
    net = Weighted()
    net.initialize()
    x, w, y = (mx.nd.array(generator.normal(size=(4, size))) for size in (3, 1, 2))
    ghost, loop, _ = ghost_for(net, max_grad_norm=0.5)
    for rest in ((y, w), (), (y, w), (None, None)):

        def losses(s=slice(None), rest=rest):
            return (
                net(x[s], *(None if one is None else one[s] for one in rest)).square().sum(axis=1)
            )

        alone = [lambda i=i, losses=losses: losses(slice(i, i + 1)) for i in range(4)]
        assert_same_sum(taken(ghost.clip([losses])), taken(loop.clip(alone)))
    with pytest.raises(UserError, match="weighted is given None in front of another input"):
        ghost.clip([lambda: net(x, None, w).sum(axis=1)])


def test_mxnets_own_lstms_are_clipped_as_ours_are(generator, monkeypatch):
    batch = random_batch(generator, LENGTHS, "clc")
    model = tiny("clc")
    ghost, _, _ = ghost_for(model, max_grad_norm=2.0)
    ours = taken(ghost.clip([lambda: model.loss(batch)]))
    monkeypatch.setattr("edp_mx.tasks.model.quicken", lambda *_: None)
    model = tiny("clc")  # the same weights
    other, loop, _ = ghost_for(model, max_grad_norm=2.0)
    expected = by_loop(loop, model, batch)
    assert_same_sum(taken(other.clip([lambda: model.loss(batch)])), expected)
    assert_same_sum(ours, expected)


def in_units(model, batch, rows):
    """The losses of units of so many rows."""
    return lambda: model.loss(batch).reshape((-1, rows)).sum(axis=1)


@settings(max_examples=24, deadline=None)
@given(
    rows=st.integers(1, 4),
    units=st.integers(1, 4),
    seed=st.integers(0, 99),
    family=st.sampled_from(FAMILIES),
    c=st.sampled_from([0.5, 4.0, NO_CLIPPING]),
)
def test_the_clipped_sum_is_the_loops(rows, units, seed, family, c):
    """Of units of one or several rows."""
    generator = np.random.default_rng(seed)
    model = tiny(family)
    batch = random_batch(generator, generator.integers(1, 8, rows * units), family)
    scales = generator.uniform(0.1, 1, len(layers_of(model)))
    ghost, loop, _ = ghost_for(model, max_grad_norm=c, scales=scales)
    expected = by_loop(loop, model, batch, rows)
    assert_same_sum(taken(ghost.clip([in_units(model, batch, rows)])), expected)
    assert ghost.statistics.norm_sum == pytest.approx(loop.statistics.norm_sum, rel=1e-5)
    assert ghost.statistics.clipped == loop.statistics.clipped


def check(ghost, model, batch, rows=1):
    """`refuse_wrong` without dropout."""

    def losses(places):
        def call():
            with autograd.predict_mode():
                return in_units(model, part(batch, places), rows)()

        return call

    starts = range(0, len(batch.lengths), rows)
    refuse_wrong(
        ghost,
        together=[losses(range(len(batch.lengths)))],
        alone=[losses(np.arange(start, start + rows)) for start in starts],
    )


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_sound_network_passes_the_check(family, rows, generator):
    model = tiny(family, dropout=0.4)
    ghost, _, flat = ghost_for(model)
    check(ghost, model, random_batch(generator, LENGTHS, family), rows)
    assert ghost.statistics.units == 0  # and nothing is left that could be released
    with pytest.raises(UserError):
        flat.refuse_stale()


def small_layer(ghost, losses):
    """A layer whose norm is a hundredth part of the whole, or the next smaller; and its number."""
    squares = ghost.squared_norms(losses)
    shares = np.sqrt(squares / squares.sum(axis=1, keepdims=True)).max(axis=0)  # (L,)
    number = int(np.argmax(np.where(shares < 0.1, shares, 0)))
    assert 1e-4 < shares[number] < 0.1
    return number


@pytest.mark.parametrize("bug", ["norms", "clipped sums"])
@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_bug_in_one_small_layer_is_noticed(family, rows, bug, generator):
    """Of the whole norm it is less than float32's noise used to be allowed."""
    model = tiny(family)
    batch = random_batch(generator, LENGTHS, family)
    ghost, _, flat = ghost_for(model)
    number = small_layer(ghost, in_units(model, batch, rows))
    layer, squares_of, add = flat.layers[number], ghost._squares, ghost._add

    def wrong_norms(rules, num_units):
        squares = squares_of(rules, num_units)
        whole = squares.sum(axis=1)
        squares[:, number] *= 0.9
        assert (np.sqrt(squares.sum(axis=1) / whole) > 1 - 1e-3).all()
        return squares

    def wrong_sums(losses):
        values, factor, made = add(losses)
        flat.views(values)[layer.parameters[0].name][...] *= 0.99
        return values, factor, made

    if bug == "norms":
        ghost._squares, name = wrong_norms, layer.name
    else:
        ghost._add, name = wrong_sums, layer.parameters[0].name
    with pytest.raises(UserError, match=f"disagree on this network: the {bug} of {name} differ"):
        check(ghost, model, batch, rows)
