"""The facade: its clipped sums against a loop, its ε against `edp-mx account`, and wrong use."""

import logging
import subprocess
import sys
from dataclasses import replace
from itertools import islice

import mxnet as mx
import numpy as np
import pytest
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn
from support.cli import printed, strictly
from support.documentation import ROOT
from support.own_networks import (
    BATCH,
    LOSS,
    NETWORKS,
    N,
    clipped_sum_by_hand,
    mlp,
    ready,
    training,
    units_of,
    vectors,
    weights_of,
)
from support.refusals import one_sentence

import edp_mx
from edp_mx.dp.accounting.decay import Decay
from edp_mx.dp.accounting.guarantee import guarantee
from edp_mx.dp.accounting.ledger import LEDGER, read_ledger
from edp_mx.dp.accounting.lognumber import exp_of
from edp_mx.errors import UserError

C = 0.4


@pytest.mark.parametrize("unit", ["example", "user", "micro_batch"])
@pytest.mark.parametrize("sampler", ["shuffle", "poisson"])
@pytest.mark.parametrize("name", NETWORKS)
def test_a_step_takes_away_the_mean_of_the_clipped_gradients(
    name, sampler, unit, generator, caplog
):
    make, examples, kind = NETWORKS[name]
    net, dataset = make(), examples(generator)
    settings = {"unit": unit, "sampler": sampler, "max_grad_norm": C}
    if unit == "user":
        settings.update(users=[f"user {i % 12}" for i in range(N)], num_examples=12, batch_size=6)
    private = training(ready(net, generator), **settings)
    divisor = {"example": BATCH, "user": 6, "micro_batch": 1}[unit]
    for batch in private.batches(dataset):
        before, units = weights_of(net), units_of(batch)
        of_mean = BATCH if unit == "micro_batch" else 1
        expected = clipped_sum_by_hand(
            net, dataset, units, max_grad_norm=C, divisor=of_mean
        ) / divisor if units else 0.0  # fmt: skip
        with pytest.raises(UserError, match="raw"):  # what `backward` wrote by hand
            private.trainer.step(1)
        private.step(batch)
        moved = before - weights_of(net)
        assert np.linalg.norm(moved - expected) <= 1e-5 * max(np.linalg.norm(expected), 1e-3)
    assert private.plan.clipping == kind
    warned = [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]
    assert [("no rule" in text, "takes its place" in text) for text in warned] == (
        [(True, True)] if kind == "loop" else []
    )


def test_the_epsilon_is_that_of_edp_mx_account(generator, tmp_path, capsys):
    """Three counts: the training's own, `account` on its ledger, `account` on the same numbers."""
    folder = tmp_path / "kept"
    private = training(
        ready(mlp(), generator), folder=folder, epochs=3, noise_multiplier=1.25,
        decay=Decay("linear", 0.1), delta=1e-3,
    )  # fmt: skip
    assert private.epsilon == 0
    for batch in private.batches(vectors(generator)):
        private.step(batch)
    account = ("account", "--json", "--mechanism", "dp_sgd", "--noise-multiplier", 1.25,
               "--sampler", "poisson", "--epochs", 3, "--batch-size", BATCH, "--num-examples", N,
               "--delta", 1e-3, "--set", "privacy.adjacency=zero_out",
               "privacy.decay={kind: linear, rate: 0.1}")  # fmt: skip
    by_numbers = strictly(printed(capsys, *account))["holds"]["epsilon"]
    by_ledger = strictly(printed(capsys, "account", folder, "--json"))
    assert private.epsilon == by_numbers
    assert by_ledger["holds"]["epsilon"] == by_numbers
    assert "each utterance clipped" in private.guarantee.describe()


def test_a_target_is_met_and_not_by_much(generator):
    private = training(ready(mlp(), generator), noise_multiplier=None, target_epsilon=3.0, epochs=2)
    for batch in private.batches(vectors(generator)):
        private.step(batch)
    assert 2.999 < private.epsilon <= 3.0


def test_edp_sgd_with_its_decay_by_the_same_calls(generator):
    private = training(
        ready(mlp(), generator), unit="micro_batch", sampler="shuffle", variant="published",
        adjacency="replace_one", noise_multiplier=1.0, decay=Decay("exponential", 0.1), epochs=2,
        layer_scales="sqrt_dim",
    )  # fmt: skip
    for batch in private.batches(vectors(generator)):
        private.step(batch)
    assert private.plan.mechanism == "edp_sgd"
    assert private.plan.release.layer_scales == pytest.approx((1, np.sqrt(21 / 30)))
    published = sum(
        1 / (2 * np.exp(-0.2 * t)) for t in range(2)
    )  # Σ 1 / (2 z_t²), z_t = e^(−0.1 t)
    assert np.exp(private.guarantee.as_published.rho.log) == pytest.approx(published)


def test_a_training_goes_on_where_its_folder_left_it(generator, tmp_path):
    dataset, folder = vectors(generator), tmp_path / "kept"
    settings = {"noise_multiplier": 1.0, "epochs": 3, "folder": folder}
    first = training(ready(mlp(), generator), **settings)
    for batch in first.batches(dataset, epochs=2):
        first.step(batch)
    kept, spent = weights_of(first.net), first.epsilon
    first.step(next(first.batches(dataset)))  # of the third epoch, which is never ended
    again = training(ready(mlp(), generator), **settings)
    batches = again.batches(dataset)
    batch = next(batches)
    assert (again.epoch, batch.epoch, batch.step) == (2, 2, 0)
    assert np.array_equal(weights_of(again.net), kept)
    again.step(batch)
    for batch in batches:
        again.step(batch)
    assert [entry.epoch for entry in read_ledger(folder / "privacy_ledger.jsonl").entries] == [
        *(0, 1, 2, 2)  # the epoch that was begun twice counts twice
    ]
    assert again.epsilon > first.epsilon > spent > 0
    ended = training(ready(mlp(), generator), **settings)
    assert ended.epsilon == again.epsilon  # before it has read the checkpoint
    assert list(ended.batches(dataset)) == []


def test_of_two_trainings_in_one_folder_the_first_must_not_go_on_once_the_second_has(
    generator, tmp_path
):
    """Each would tie its lines to others than the last, and no ε could be read any more."""
    dataset, settings = vectors(generator), {"folder": tmp_path, "epochs": 4}
    first, second = (
        training(ready(mlp(), generator), noise_multiplier=1.0, **settings) for _ in range(2)
    )
    for private in (first, second):
        for batch in private.batches(dataset, epochs=1):
            private.step(batch)
    with pytest.raises(UserError, match=r"privacy_ledger\.jsonl was changed or removed since"):
        next(first.batches(dataset))
    for batch in second.batches(dataset):
        second.step(batch)
    assert [each.epoch for each in read_ledger(tmp_path / LEDGER).entries] == [0, 1, 2, 3]


@pytest.mark.parametrize("optimizer", ["adam", "nadam", "dcasgd", "ftml", "rmsprop", "lamb"])
def test_an_optimizer_goes_on_exactly(generator, tmp_path, optimizer):
    dataset = vectors(generator)
    plan = edp_mx.make_plan(
        num_examples=N, batch_size=N, epochs=6, noise_multiplier=0.0, sampler="shuffle",
        adjacency="replace_one",
    )  # fmt: skip

    def trained(name, *calls):
        for epochs in calls:
            net = ready(mlp(), np.random.default_rng(3))
            private = edp_mx.PrivateTraining(
                net, LOSS, plan=plan, optimizer=optimizer, folder=tmp_path / name,
                optimizer_params={"learning_rate": 0.1},
            )  # fmt: skip
            for batch in private.batches(dataset, epochs=epochs):
                private.step(batch)
        return weights_of(net)

    np.testing.assert_allclose(trained("whole", None), trained("twice", 3, None), atol=1e-5)


def test_a_data_set_that_draws_its_items_anew_keeps_ghost_clipping(generator, caplog):
    dataset = vectors(generator).transform_first(
        lambda x: x + np.float32(generator.normal()), lazy=True
    )
    private = training(ready(mlp(), generator), noise_multiplier=1.0)
    for batch in private.batches(dataset):
        private.step(batch)
    assert private.plan.clipping == "ghost" and not caplog.records


def test_a_user_is_the_same_however_unicode_writes_the_name(generator):
    names = ["Jos\u00e9", "Jose\u0301", " Jos\u00e9 ", "jos\u00e9"]
    private = training(
        ready(mlp(), generator), unit="user", users=[names[i % 4] for i in range(N)],
        num_examples=2, batch_size=2, noise_multiplier=1.0,
    )  # fmt: skip
    drawn = next(private.batches(vectors(generator)))
    assert sorted(map(len, units_of(drawn))) == [6, 18]


def test_a_ledger_that_is_gone_or_of_another_plan_is_refused(generator, tmp_path):
    dataset = vectors(generator)
    private = training(ready(mlp(), generator), folder=tmp_path, noise_multiplier=1.0)
    for batch in private.batches(dataset):
        private.step(batch)
    with pytest.raises(UserError, match="noise_multiplier 1.0, but the run has 2.0"):
        next(training(
            ready(mlp(), generator), folder=tmp_path, noise_multiplier=2.0
        ).batches(dataset))  # fmt: skip
    (tmp_path / "privacy_ledger.jsonl").unlink()
    with pytest.raises(UserError, match="cannot read the ledger"):
        next(training(
            ready(mlp(), generator), folder=tmp_path, noise_multiplier=1.0
        ).batches(dataset))  # fmt: skip


def test_a_budget_ends_the_training_before_it_is_exceeded(generator):
    private = training(
        ready(mlp(), generator), noise_multiplier=1.0, epochs=50, delta=1e-3, max_epsilon=4.0
    )
    steps = 0
    for batch in private.batches(vectors(generator)):
        private.step(batch)
        steps += 1
    assert 0 < steps < 150 and 3.5 < private.epsilon <= 4.0
    assert list(private.batches(private._dataset)) == []


def begun(generator, **settings):
    private, dataset = training(ready(mlp(), generator), **settings), vectors(generator)
    return private, dataset, private.batches(dataset)


def test_only_a_batch_that_was_drawn_last_is_trained_on_once(generator):
    private, dataset, batches = begun(generator)
    batch = next(batches)
    private.step(batch)
    for wrong in (batch, None, dataset[:BATCH]):
        one_sentence("did not draw, or an old one", private.step, wrong)
    next(batches)
    one_sentence("drawn but not trained on", next, batches)
    one_sentence("another data set", next, private.batches(vectors(generator)))


def test_a_raw_step_is_refused(generator):
    private, _, batches = begun(generator)
    private.step(next(batches))
    for call in (private.trainer.step, private.trainer.update):
        one_sentence("would apply the raw gradient", call, BATCH)


def test_a_network_that_changed_is_refused(generator):
    private, _, batches = begun(generator)
    batch = next(batches)
    private.net[0].weight.grad_req = "null"
    one_sentence("other trainable parameters than when", private.step, batch)
    private, _, batches = begun(generator)
    batch = next(batches)
    private.net.initialize(force_reinit=True)
    one_sentence("re-initialised, cast or moved", private.step, batch)


def batch_norm():
    net = mlp()
    net.add(nn.BatchNorm())
    return net


class RenamedBatchNorm(nn.BatchNorm):
    """By another name the same running statistics."""


class HandWritten(gluon.HybridBlock):
    """The operator of a BatchNorm, whose running statistics MXNet writes in the backward pass."""

    def __init__(self):
        super().__init__()
        for name, settings in (("gamma", {}), ("beta", {}), ("mean", FROZEN), ("var", FROZEN)):
            setattr(self, name, self.params.get(name, shape=(3,), init="ones", **settings))

    def hybrid_forward(self, F, x, gamma, beta, mean, var):
        return F.BatchNorm(x, gamma, beta, mean, var)


class KeepsWhatItSaw(nn.Dense):
    """A running mean of its input, which ghost clipping does not look at."""

    def __init__(self):
        super().__init__(3, in_units=3)
        self.seen = self.params.get("seen", shape=(3,), init="zeros", **FROZEN)

    def forward(self, x, *args):
        if autograd.is_training():
            self.seen.set_data(0.9 * self.seen.data() + x.mean(axis=0).detach())
        return nd.FullyConnected(x, self.weight.data(), self.bias.data(), num_hidden=3)


FROZEN = {"grad_req": "null", "differentiable": False}


@pytest.mark.parametrize(
    "layer, complaint",
    [
        (RenamedBatchNorm, "is a RenamedBatchNorm: it mixes"),
        (HandWritten, "a pass through the network changes .*mean, such as a running mean"),
        (KeepsWhatItSaw, "a pass through the network changes .*seen, such as a running mean"),
    ],
)
def test_running_statistics_of_the_data_are_refused_however_they_are_made(
    layer, complaint, generator
):
    """They would be part of the trained network without noise, beside a finite ε."""
    net = nn.Sequential()
    net.add(mlp(), layer())
    with pytest.raises(UserError, match=complaint):
        next(training(ready(net, generator), noise_multiplier=1.0).batches(vectors(generator)))


@pytest.mark.parametrize(
    "changed", [{"micro_batch_size": 20.0}, {"sample_rate": 0.01}, {"micro_batch_size": 4.0}]
)
def test_a_plan_whose_batches_are_others_than_it_counts_is_refused(changed, generator):
    """20 of 24 examples in a step, counted as 8 of 24: the ε would be less than a third."""
    plan = edp_mx.make_plan(num_examples=N, epochs=2, batch_size=BATCH, noise_multiplier=1.0)
    plan = replace(plan, release=replace(plan.release, **changed))
    private = edp_mx.PrivateTraining(ready(mlp(), generator), LOSS, plan=plan)
    with pytest.raises(UserError, match="counts steps of other sizes than it draws"):
        next(private.batches(vectors(generator)))


def test_steps_of_an_epoch_may_be_fewer_or_more_and_none_is_refused(generator):
    for steps in (1, 7):
        private = training(
            ready(mlp(), generator), noise_multiplier=1.0, steps_per_epoch=steps, epochs=2
        )
        places = [
            (b.epoch, b.step, private.step(b))[:2] for b in private.batches(vectors(generator))
        ]
        assert places == [(epoch, step) for epoch in (0, 1) for step in range(steps)]
        counted = edp_mx.make_plan(
            num_examples=N, epochs=2 * steps, batch_size=BATCH, noise_multiplier=1.0,
            steps_per_epoch=1,
        )  # fmt: skip
        assert private.epsilon == pytest.approx(exp_of(guarantee(counted).holds.epsilon.log))
    for wrong in (0, -1, True, 2.5):
        with pytest.raises(UserError, match="steps_per_epoch is .*a whole number from 1"):
            training(mlp(), noise_multiplier=1.0, steps_per_epoch=wrong)


class MixesInTraining(gluon.Block):
    """Takes the mean of a batch away, but only while it is trained."""

    def __init__(self):
        super().__init__(prefix="mixes_")
        with self.name_scope():
            self.first, self.last = gluon.nn.Dense(8, in_units=4), gluon.nn.Dense(3, in_units=8)

    def forward(self, x):
        hidden = self.first(x)
        if mx.autograd.is_training():
            hidden = hidden - hidden.mean(axis=0, keepdims=True)
        return self.last(hidden)


class Bag(gluon.HybridBlock):
    """The mean of the words of a text and of its padding, which is not masked."""

    def __init__(self):
        super().__init__(prefix="bag_")
        with self.name_scope():
            self.words, self.last = gluon.nn.Embedding(40, 8), gluon.nn.Dense(3, in_units=8)

    def hybrid_forward(self, F, x):
        return self.last(F.mean(self.words(x), axis=1))


def padded(items):
    longest = max(len(words) for words, _ in items)
    rows = [np.pad(words, (0, longest - len(words))) for words, _ in items]
    return np.array(rows, "float32"), np.array([label for _, label in items], "float32")


@pytest.mark.parametrize("is_sorted", [True, False])
@pytest.mark.parametrize("kind", ["training", "zeros", "padding"])
def test_a_network_that_mixes_examples_is_trained_by_the_loop(kind, is_sorted, generator, caplog):
    """Also where the first texts have one length, where it does not mix to predict or at first."""
    if kind != "padding":
        net, dataset = ready(MixesInTraining(), generator), vectors(generator)
        if kind == "zeros":  # lets no value of another example through, and no gradient
            net.last.weight.set_data(nd.zeros((3, 8)))
        private, start = training(net), weights_of(net)
    else:
        lengths = sorted([2] * 6 + generator.integers(2, 9, N - 7).tolist()) + [30]
        texts = [(generator.integers(1, 40, n), n % 3) for n in lengths]
        dataset = texts if is_sorted else [texts[i] for i in generator.permutation(N)]
        private = training(ready(Bag(), generator), batchify_fn=padded)
    next(private.batches(dataset))
    assert private.plan.clipping == "loop" and "takes its place" in caplog.text
    if kind != "padding":
        assert (weights_of(net) == start).all()  # after all that was tried with others


class Remembering(nn.Block):
    """Subtracts a running mean of its inputs, which is no parameter; with 0 that of the last."""

    def __init__(self, kept):
        super().__init__()
        self.kept, self.mean = kept, nd.zeros(4)
        with self.name_scope():
            self.dense = nn.Dense(3, in_units=4)

    def forward(self, inputs):
        centred = inputs - self.mean
        if autograd.is_training():
            self.mean = (self.kept * self.mean + (1 - self.kept) * inputs.mean(axis=0)).detach()
        return self.dense(centred)


@pytest.mark.parametrize("clipping", ["ghost", "loop"])
@pytest.mark.parametrize(("kept", "scale"), [(0.9, 1), (0.9, 0), (0, 1)])
def test_a_network_that_keeps_something_of_examples_is_refused(
    clipping, kept, scale, generator, tmp_path
):
    """Also where a layer of zeros hides it at first, and where only the last batch is kept."""
    net = ready(Remembering(kept), generator)
    net.dense.weight.set_data(scale * net.dense.weight.data())
    private = training(net, clipping=clipping, folder=tmp_path)
    batches = private.batches(vectors(generator))
    one_sentence("depends on examples before it.*kept without noise", next, batches)
    assert not any(tmp_path.iterdir())


def test_dropout_is_no_mixing(generator):
    net = gluon.nn.HybridSequential(prefix="dropped_")
    with net.name_scope():
        net.add(gluon.nn.Dense(64, in_units=4), gluon.nn.Dropout(0.5), gluon.nn.LayerNorm())
        net.add(gluon.nn.Dense(3))
    private = training(ready(net, generator))
    next(private.batches(vectors(generator)))
    assert private.plan.clipping == "ghost"


def test_a_ledger_that_was_cut_states_no_epsilon(generator, tmp_path):
    private = training(ready(mlp(), generator), folder=tmp_path, noise_multiplier=1.0)
    for batch in private.batches(vectors(generator)):
        private.step(batch)
    ledger = tmp_path / "privacy_ledger.jsonl"
    whole = ledger.read_bytes()
    again = lambda: training(ready(mlp(), generator), folder=tmp_path, noise_multiplier=1.0)  # noqa: E731
    assert again().epsilon == private.epsilon
    ledger.write_bytes(whole[: whole.rindex(b"\n", 0, -1) + 1])
    with pytest.raises(UserError, match="is shorter than the checkpoint's"):
        again()
    for cut in (whole[:20], b""):
        ledger.write_bytes(cut)
        with pytest.raises(UserError, match="is shorter than the checkpoint's"):
            again()
    ledger.unlink()
    with pytest.raises(UserError, match="cannot read the ledger"):
        again()


@pytest.mark.parametrize("size", [0, 20])
def test_a_folder_that_a_crash_left_with_half_a_head_is_begun_anew(size, generator, tmp_path):
    """Nothing had been released: the head is on the disk before the first step."""
    ledger, whole = tmp_path / "privacy_ledger.jsonl", tmp_path / "whole"
    for folder in (whole, tmp_path):
        if folder == tmp_path:
            ledger.write_bytes((whole / ledger.name).read_bytes()[:size])
        private = training(ready(mlp(), generator), folder=folder, noise_multiplier=1.0)
        for batch in private.batches(vectors(generator)):
            private.step(batch)
    found = [read_ledger(each / ledger.name) for each in (whole, tmp_path)]
    assert found[0].entries == found[1].entries and found[1].entries


def test_a_ledger_of_another_plan_states_no_epsilon(generator, tmp_path):
    """By other neighbours it would state half of the ε."""
    private = training(ready(mlp(), generator), folder=tmp_path, adjacency="replace_one",
                       noise_multiplier=2.0)  # fmt: skip
    next(private.batches(vectors(generator)))
    with pytest.raises(UserError, match="was begun with"):
        training(ready(mlp(), generator), folder=tmp_path, noise_multiplier=2.0)


IN_USE = """
import sys
from edp_mx.runtime.files import lock_folder
from edp_mx.errors import UserError
from pathlib import Path
try:
    lock_folder(Path(sys.argv[1]))
except UserError as error:
    print(error)
"""


def test_a_folder_is_one_process_s(generator, tmp_path):
    private = training(ready(mlp(), generator), folder=tmp_path)
    next(private.batches(vectors(generator)))
    said = subprocess.run([sys.executable, "-c", IN_USE, str(tmp_path.resolve())],
                          capture_output=True, text=True, cwd=ROOT)  # fmt: skip
    assert "is in use: another process trains into it" in said.stdout


REFUSALS = {
    "users of no unit": ({"users": ["a"] * N}, "the plan protects single examples"),
    "no most": (
        {"unit": "user", "users": ["a"] * N, "most": None},
        "max_examples_per_user is None: the unit user needs",
    ),
    "a user that is None": ({"unit": "user", "users": [None] * N}, "the user of each example"),
    "a BatchNorm": ({"net": batch_norm}, "is a BatchNorm: it mixes the examples"),
    "other workers": ({"num_workers": 2}, "num_workers=2, but 1 are running"),
    "another n": ({"num_examples": N + 1}, f"num_examples={N + 1}, but the data set has {N} ex"),
    "a mean loss": ({"loss": lambda *a: LOSS(*a).mean()}, "must be one number per example"),
    "two sizes": ({"sample_rate": 0.5}, "give one of batch_size and sample_rate, not both"),
    "no noise": ({"noise_multiplier": None}, "target_epsilon and noise_multiplier, not none"),
    "a delta": ({"delta": 0.5}, "not below 1/n"),
    "a batch": ({"batch_size": N + 1}, "batch_size is 25; it must be a whole number from 1 to 24"),
    "a unit": ({"unit": "sentence"}, "unit is 'sentence'; choose one of example"),
    "no users": ({"unit": "user"}, "needs the user of each example: give users"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_what_cannot_be_trained_says_why(case, generator):
    wrong, complaint = REFUSALS[case]
    make = wrong.pop("net", mlp) if "net" in wrong else mlp
    with pytest.raises(UserError) as caught:
        next(training(ready(make(), generator), **wrong).batches(vectors(generator)))
    assert complaint in str(caught.value)


def rows(generator, fill):
    """The examples of `vectors` as a list, whose rows a function makes others."""
    return [(fill(i, row), label) for i, (row, label) in enumerate(zip(*vectors(generator)._data))]


class Fits(gluon.HybridBlock):
    """A parameter that two operators read, which ghost clipping has no rule for."""

    def __init__(self):
        super().__init__(prefix="fits_")
        self.weight = self.params.get("weight", shape=(3, 4))

    def hybrid_forward(self, F, x, weight):
        made = F.FullyConnected(x, weight, no_bias=True, num_hidden=3)
        return made + F.FullyConnected(x * x, weight, no_bias=True, num_hidden=3)


NO_BATCH = "batchify_fn must make arrays of numbers of one shape"
NOT_FINITE = "the loss of the first examples or its gradient is not finite"
DATA_SETS = {
    "NaN behind a relu": (lambda i, row: row * np.nan if i == 5 else row, NOT_FINITE),
    "rows of two lengths": (lambda i, row: row[: 3 + i % 2], NO_BATCH),
    "lists of two lengths": (lambda i, row: row.tolist()[: 3 + i % 2], NO_BATCH),
    "arrays of two lengths": (lambda i, row: nd.array(row[: 3 + i % 2]), NO_BATCH),
    "texts": (lambda i, row: f"text {i}", NO_BATCH),
    "objects": (lambda i, row: [object()], NO_BATCH),
}


@pytest.mark.filterwarnings("ignore:Creating an ndarray from ragged")
@pytest.mark.parametrize("case", DATA_SETS)
def test_data_that_nothing_is_learned_from_are_refused_before_the_ledger(case, generator, tmp_path):
    fill, complaint = DATA_SETS[case]
    private = training(ready(mlp(), generator), noise_multiplier=1.0, folder=tmp_path / "kept")
    one_sentence(complaint, next, private.batches(rows(generator, fill)))
    assert not (tmp_path / "kept").exists()
    next(private.batches(vectors(generator)))  # with data that were mended


def test_a_loss_that_is_not_finite_is_refused(generator):
    for factor in (np.nan, np.inf):
        private = training(ready(mlp(), generator), loss=lambda *a, by=factor: LOSS(*a) * by)
        one_sentence(NOT_FINITE, next, private.batches(vectors(generator)))


@pytest.mark.parametrize("wrap", [lambda data: gluon.data.DataLoader(data, BATCH), iter])
def test_what_has_no_items_is_no_data_set(wrap, generator):
    private = training(ready(mlp(), generator))
    one_sentence("give it the data set itself", next, private.batches(wrap(vectors(generator))))


def test_a_network_without_weights_is_refused_until_it_has_them(generator):
    dataset, private = vectors(generator), training(mlp())
    one_sentence(r"call net.initialize\(\) before", next, private.batches(dataset))
    ready(private.net, generator)
    assert np.isfinite(private.step(next(private.batches(dataset))))


@pytest.mark.parametrize(
    "wrong, complaint",
    [
        ({"plan": {"epochs": 1}}, "plan is a dict: give what make_plan returns"),
        ({"net": [mlp]}, "net is a list: give a network of Gluon"),
        ({"optimizer": "adamm"}, "optimizer 'adamm' .*a name that MXNet knows"),
        ({"optimizer_params": {"lerning_rate": 1}}, "lerning_rate.*settings of that optimizer"),
        ({"optimizer": "sgd", "optimizer_params": {"beta1": 1}}, "beta1.*settings of that optim"),
        ({"seed": 1.5}, "seed is 1.5; it must be a whole number from 0"),
        ({"seed": -1}, "seed is -1; it must be a whole number from 0"),
        ({"chunk_size": 0}, "chunk_size is 0; it must be a whole number from 1"),
        ({"folder": "a file"}, "folder='a file': a file is a file; give a folder"),
        ({"folder": "a file/below"}, "folder='a file/below': a file is a file; give a folder"),
    ],
)
def test_arguments_of_another_kind_are_refused(wrong, complaint, generator, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a file").touch()
    plan = edp_mx.make_plan(num_examples=N, epochs=1, batch_size=BATCH, noise_multiplier=1.0)
    settings = {"net": ready(mlp(), generator), "loss": LOSS, "plan": plan, **wrong}
    one_sentence(complaint, edp_mx.PrivateTraining, **settings)


@pytest.mark.parametrize(
    "wrong, complaint",
    [
        ({"delta": "1e-5"}, "delta is '1e-5'; it must be a number"),
        ({"max_grad_norm": [1]}, r"max_grad_norm is \[1\]; it must be a number"),
        ({"noise_multiplier": True}, "noise_multiplier is True; it must be a number"),
        ({"noise_multiplier": None, "target_epsilon": "8"}, "target_epsilon is '8'; it must be"),
        ({"decay": "linear"}, r"decay is 'linear'; give a Decay\(kind, rate\)"),
        ({"batch_size": 2.5}, "batch_size is 2.5; it must be a whole number"),
        ({"epochs": True}, "epochs is True; it must be a whole number"),
    ],
)
def test_a_plan_of_other_kinds_is_refused_by_name(wrong, complaint):
    settings = {"num_examples": N, "epochs": 1, "batch_size": BATCH, "noise_multiplier": 1.0}
    one_sentence(complaint, edp_mx.make_plan, **{**settings, **wrong})


def test_settings_that_numpy_or_the_program_made_are_taken(generator, tmp_path):
    plan = edp_mx.make_plan(
        num_examples=np.int64(N), epochs=np.int32(1), batch_size=np.int64(BATCH), delta=np.float32(
            1e-4), noise_multiplier=np.float64(1), decay=Decay("linear", 0.5),
    )  # fmt: skip
    private = edp_mx.PrivateTraining(
        ready(mlp(), generator), LOSS, plan=plan, optimizer=mx.optimizer.SGD(learning_rate=0.1),
        seed=np.int64(3), chunk_size=np.int64(4), folder=str(tmp_path),
    )  # fmt: skip
    private.step(next(private.batches(vectors(generator))))
    assert read_ledger(tmp_path / LEDGER).plan == private.plan


def test_numbers_of_double_precision_are_trained_on_as_floats(generator):
    values, labels = vectors(generator)._data
    after = []
    for dtype in ("float32", "float64"):
        net = ready(mlp(), np.random.default_rng(3))
        private = training(net, sampler="shuffle", batch_size=N)
        private.step(next(private.batches(gluon.data.ArrayDataset(values.astype(dtype), labels))))
        after.append(weights_of(net))
    np.testing.assert_array_equal(*after)


def test_a_warning_of_the_loop_names_the_argument_of_the_library(generator, caplog):
    private = training(ready(Fits(), generator))
    next(private.batches(vectors(generator)))
    (warned,) = [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]
    assert 'give make_plan clipping="loop"' in warned and "privacy." not in warned


def test_other_automatic_names_at_a_second_start_are_explained(generator, tmp_path):
    settings = {"noise_multiplier": 1.0, "folder": tmp_path}
    for batch in (first := training(ready(nn.Dense(3), generator), **settings)).batches(
        dataset := vectors(generator)
    ):
        first.step(batch)
    again = training(ready(nn.Dense(3), generator), **settings)
    for _ in range(2):  # nor does a second call train what was not restored
        one_sentence("automatic names: give them a prefix", next, again.batches(dataset))


def test_items_without_a_label_are_refused(generator):
    dataset = gluon.data.ArrayDataset(generator.normal(size=(N, 4)).astype("float32"))
    with pytest.raises(UserError, match=r"must be \(input, …, label\)"):
        next(training(ready(mlp(), generator)).batches(dataset))


def test_a_batchify_function_pads_and_the_package_has_the_names(generator):
    lists = [(row[: 2 + i % 3], i % 3) for i, row in enumerate(generator.normal(size=(N, 4)))]

    def pad(items):
        rows = [np.pad(values, (0, 4 - len(values))) for values, _ in items]
        return np.array(rows, "float32"), np.array([label for _, label in items], "float32")

    plan = edp_mx.make_plan(num_examples=N, epochs=1, sample_rate=1 / 3, noise_multiplier=1.0)
    private = edp_mx.PrivateTraining(ready(mlp(), generator), LOSS, plan=plan, batchify_fn=pad)
    losses = [private.step(batch) for batch in islice(private.batches(lists), 3)]
    assert len(losses) == 3 and all(np.isfinite(losses)) and private.epoch == 1
    assert plan.release.batch_size == BATCH
