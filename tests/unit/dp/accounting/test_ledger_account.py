"""A ledger against its plan: every way in which they can differ is said, and nothing else."""

import json

import pytest
from support.made_ledgers import (
    plan_with,
    poisson_line,
    poisson_plan,
    shuffled_line,
    write_ledger,
    write_plan,
)
from support.refusals import one_sentence

from edp_mx.dp.accounting.decay import Decay
from edp_mx.dp.accounting.ledger import read_ledger
from edp_mx.dp.accounting.ledger_account import account_for, differences

SCALES = {**shuffled_line(0, None, 10.0), "what": "layer scales"}
WITH_SCALES = plan_with(scales_source="dp_release", scales_multiplier=10.0)


def found(tmp_path, plan, lines, tail=""):
    """The differences of a ledger with these lines."""
    return differences(read_ledger(write_ledger(tmp_path / "l", plan, lines, tail)))


def whole(**changes):
    return [shuffled_line(epoch, **changes) for epoch in range(4)]


def test_what_was_planned_is_no_difference(tmp_path):
    assert found(tmp_path, plan_with(), whole()) == ()
    assert found(tmp_path, poisson_plan(), [poisson_line(epoch) for epoch in range(3)]) == ()
    assert found(tmp_path, WITH_SCALES, [SCALES, *whole()]) == ()


def test_the_plan_of_each_variant_and_decay_is_what_a_run_writes(tmp_path):
    # as in Algorithm 1: z / (kappa sqrt N), by hand
    published = plan_with({"variant": "published"}, decay=Decay("linear", 0.5))
    lines = [shuffled_line(t, 8 / (1 + t / 2), 8 / (1 + t / 2) / (2 * 8**0.5)) for t in range(4)]
    assert found(tmp_path, published, lines) == ()
    path = write_ledger(tmp_path / "p", poisson_plan(), [])
    planned = read_ledger(path).plan.entries()
    assert [entry.event.sample_rate for entry in planned] == [64 / 4480] * 3


@pytest.mark.parametrize(
    "lines, words",
    [
        (whole()[:3], ["epoch 4 is missing"]),
        (whole()[:1], ["epochs 2 to 4 are missing"]),
        ([], ["epochs 1 to 4 are missing"]),
        ([whole()[0], whole()[3]], ["epochs 2 to 3 are missing"]),
        ([*whole()[:2], *whole()[1:]], ["epoch 2 was begun 2 times", "counts 2 times"]),
        ([*whole(), *whole()], ["epochs 1 to 4 were begun 2 times"]),
        ([*whole(), shuffled_line(4)], ["epoch 5 is there, but was not planned"]),
        ([*whole()[:3], shuffled_line(3, 7.0)], ["the noise multiplier 7, planned was 8"]),
        ([*whole()[:3], shuffled_line(3, 8.0, 2.0)], ["effective noise multiplier 2, planned"]),
        ([*whole()[:3], shuffled_line(3, None, 8.0)], ["noise multiplier None, planned was 8"]),
        ([SCALES, *whole()], ["released 1 times, planned was 0"]),
        ([{**whole()[0], "what": "something"}, *whole()], ["something is there"]),
    ],
)
def test_each_difference_is_said(tmp_path, lines, words):
    text = "\n".join(found(tmp_path, plan_with(), lines))
    for word in words:
        assert word in text


def test_steps_of_poisson_epochs_are_counted(tmp_path):
    lines = [poisson_line(0), poisson_line(1, 30), poisson_line(1), poisson_line(2, 40)]
    text = "\n".join(found(tmp_path, poisson_plan(), lines))
    assert "epoch 2 holds 100 steps, 70 were planned" in text
    assert "epoch 3 holds 40 of its 70" in text
    assert "epoch 1 " not in text


def test_a_torn_line_is_said_and_not_counted(tmp_path):
    assert "cut off" in "\n".join(found(tmp_path, plan_with(), whole(), '{"what": "epo'))
    account = account_for(write_ledger(tmp_path / "m", plan_with(), whole()[:2], '{"wha'))
    assert account.spent.holds.rho.value == pytest.approx(2 / (2 * 64))
    assert account.planned.holds.rho.value == pytest.approx(4 / (2 * 64))


def test_repeated_epochs_count_as_often_as_they_are_there(tmp_path):
    lines = [*whole(), shuffled_line(3)]
    spent = account_for(write_ledger(tmp_path / "l", plan_with(), lines)).spent
    assert spent.holds.rho.value == pytest.approx(5 / (2 * 64))
    assert spent.as_published.rho.value == pytest.approx(5 / (2 * 64))


def test_the_scales_count_in_the_plan_too(tmp_path):
    account = account_for(write_ledger(tmp_path / "l", WITH_SCALES, [SCALES, *whole()[:2]]))
    assert account.spent.holds.rho.value == pytest.approx(2 / 128 + 1 / 200)
    assert account.planned.holds.rho.value == pytest.approx(4 / 128 + 1 / 200)
    assert account.planned.as_published.rho.value == pytest.approx(4 / 128)


def test_another_delta(tmp_path):
    path = write_ledger(tmp_path / "l", plan_with(), whole())
    own, other = account_for(path).spent, account_for(path, delta=1e-9).spent
    assert (own.plan.delta, own.plan.delta_mode) == (0.5 / 4478, "default")
    assert (other.plan.delta, other.plan.delta_mode) == (1e-9, "value")
    assert other.holds.epsilon.value > own.holds.epsilon.value
    one_sentence("1/n", account_for, path, delta=1e-3)


@pytest.mark.parametrize(
    "change, words",
    [
        ({"noise_multiplier": "x"}, "line 4: noise_multiplier: 'x' is not a number"),
        ({"noise_multiplier": -1}, "line 4: noise_multiplier is -1"),
        ({"noise_multiplier": True}, "line 4: noise_multiplier: True is not a number"),
        ({"effective_noise_multiplier": -1}, "line 4"),
        ({"count": 1.5}, "line 4"),
        ({"sampler": "poisson"}, "line 4: an event of sampler poisson"),
        ({"odd": 1}, "line 4"),
    ],
)
def test_an_entry_that_cannot_be_counted_names_its_line(tmp_path, change, words):
    lines = whole()
    lines[2] = {**lines[2], **change}
    one_sentence(words, account_for, write_ledger(tmp_path / "l", plan_with(), lines))


@pytest.mark.parametrize("change", [
    {"release": None}, {"decay": None}, {"epochs": "ten"}, {"num_records": -1},
    {"noise_multiplier": None}, {"surplus": 1}, {"delta": 0.0},
])  # fmt: skip
def test_a_head_that_is_none_names_line_1(tmp_path, change):
    path = write_ledger(tmp_path / "l", {**plan_with().to_dict(), **change}, whole())
    one_sentence("line 1", account_for, path)


@pytest.mark.parametrize("plan", [plan_with(), poisson_plan()], ids=["shuffle", "poisson"])
def test_a_ledger_of_this_version_is_its_plan(tmp_path, plan):
    scales = (0.5, 1.0)
    account = account_for(write_plan(tmp_path / "l", plan, scales=scales))
    assert account.differences == ()
    assert account.plan == plan.with_layer_scales(scales)
    assert account.ledger.entries == plan.entries()
    assert account.spent == account.planned
    assert plan.composition(account.ledger.entries) == plan.composition(plan.entries())


RELEASED = plan_with(scales_source="dp_release", scales_multiplier=1.5)


def test_a_release_of_alpha_with_other_noise_is_said(tmp_path):
    """The head holds z_a, so that a line that was made cheaper shows, even if its hash holds."""
    path = write_plan(tmp_path / "l", RELEASED, scales=(1.0, 0.5))
    assert account_for(path).differences == ()
    assert read_ledger(path).plan.scales_multiplier == 1.5
    cheaper = {**SCALES, "effective_noise_multiplier": 9.5}
    account = account_for(write_ledger(tmp_path / "l", RELEASED, [cheaper, *whole()]))
    assert account.differences == (
        "the release of the layer scales has the effective noise multiplier 9.5, planned was 1.5",
    )
    assert account.planned.holds.epsilon.value > account.spent.holds.epsilon.value


def test_a_head_of_this_version_that_is_none_names_line_1(tmp_path):
    for name, value in (("epochs", "ten"), ("surplus", 1), ("release", None), ("delta", 0)):
        path = write_plan(tmp_path / name, plan_with())
        head, *rest = path.read_text().splitlines(keepends=True)
        broken = json.loads(head)
        broken["plan"][name] = value
        path.write_text("".join([json.dumps(broken) + "\n", *rest]))
        one_sentence("line 1", account_for, path)
