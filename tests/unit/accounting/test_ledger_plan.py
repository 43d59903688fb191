"""A ledger against its plan: every way in which they can differ is said, and nothing else."""

import pytest
from support.made_ledgers import (
    facts_with,
    poisson_facts,
    poisson_line,
    shuffled_line,
    write_ledger,
)

from edp_mx.accounting.ledger import read_ledger
from edp_mx.accounting.ledger_guarantee import account_for, guarantee_of
from edp_mx.accounting.ledger_plan import differences, planned_epochs
from edp_mx.errors import UserError

SCALES = {**shuffled_line(0, None, 10.0), "what": "layer scales"}


@pytest.fixture
def found(tmp_path):
    """The differences of a ledger with these lines."""

    def find(facts, lines, tail=""):
        return differences(read_ledger(write_ledger(tmp_path / "l", facts, lines, tail)))

    return find


def whole(**changes):
    return [shuffled_line(epoch, **changes) for epoch in range(4)]


def test_what_was_planned_is_no_difference(found):
    assert found(facts_with(), whole()) == ()
    assert found(poisson_facts(), [poisson_line(epoch) for epoch in range(3)]) == ()
    assert found(facts_with(scales_source="dp_release"), [SCALES, *whole()]) == ()


def test_the_plan_of_each_variant_and_decay_is_what_a_run_writes(found):
    # as in Algorithm 1: z / (kappa sqrt N), by hand
    published = facts_with(release={"variant": "published"}, decay={"kind": "linear", "rate": 0.5})
    lines = [shuffled_line(t, 8 / (1 + t / 2), 8 / (1 + t / 2) / (2 * 8**0.5)) for t in range(4)]
    assert found(published, lines) == ()
    assert [entry.event.sample_rate for entry in planned_epochs(poisson_facts())] == [64 / 4480] * 3


@pytest.mark.parametrize(
    "lines, words",
    [
        (whole()[:3], ["epoch 3 is missing"]),
        (whole()[:1], ["epochs 1 to 3 are missing"]),
        ([], ["epochs 0 to 3 are missing"]),
        ([whole()[0], whole()[3]], ["epochs 1 to 2 are missing"]),
        ([*whole()[:2], *whole()[1:]], ["epoch 1 was begun 2 times", "counts 2 times"]),
        ([*whole(), *whole()], ["epochs 0 to 3 were begun 2 times"]),
        ([*whole(), shuffled_line(4)], ["epoch 4 is there, but was not planned"]),
        ([*whole()[:3], shuffled_line(3, 7.0)], ["the noise multiplier 7, planned was 8"]),
        ([*whole()[:3], shuffled_line(3, 8.0, 2.0)], ["effective noise multiplier 2, planned"]),
        ([*whole()[:3], shuffled_line(3, None, 8.0)], ["noise multiplier None, planned was 8"]),
        ([SCALES, *whole()], ["released 1 times, planned was 0"]),
        ([{**whole()[0], "what": "something"}, *whole()], ["something is there"]),
    ],
)
def test_each_difference_is_said(found, lines, words):
    text = "\n".join(found(facts_with(), lines))
    for word in words:
        assert word in text


def test_steps_of_poisson_epochs_are_counted(found):
    lines = [poisson_line(0), poisson_line(1, 30), poisson_line(1), poisson_line(2, 40)]
    text = "\n".join(found(poisson_facts(), lines))
    assert "epoch 1 holds 100 steps, 70 were planned" in text
    assert "epoch 2 holds 40 of its 70" in text
    assert "epoch 0" not in text


def test_a_missing_release_of_the_scales(found):
    assert "released 0 times" in found(facts_with(scales_source="dp_release"), whole())[0]


def test_a_torn_line_is_said_and_not_counted(found, tmp_path):
    assert "cut off" in "\n".join(found(facts_with(), whole(), '{"what": "epo'))
    account = account_for(write_ledger(tmp_path / "m", facts_with(), whole()[:2], '{"wha'))
    assert account.spent.holds.rho.value == pytest.approx(2 / (2 * 64))
    assert account.planned.holds.rho.value == pytest.approx(4 / (2 * 64))


def test_repeated_epochs_count_as_often_as_they_are_there(tmp_path):
    lines = [*whole(), shuffled_line(3)]
    spent = account_for(write_ledger(tmp_path / "l", facts_with(), lines)).spent
    assert spent.holds.rho.value == pytest.approx(5 / (2 * 64))
    assert spent.as_published.rho.value == pytest.approx(5 / (2 * 64))


def test_the_scales_count_in_the_plan_too(tmp_path):
    facts = facts_with(scales_source="dp_release")
    account = account_for(write_ledger(tmp_path / "l", facts, [SCALES, *whole()[:2]]))
    assert account.spent.holds.rho.value == pytest.approx(2 / 128 + 1 / 200)
    assert account.planned.holds.rho.value == pytest.approx(4 / 128 + 1 / 200)
    assert account.planned.as_published.rho.value == pytest.approx(4 / 128)


def test_another_delta(tmp_path):
    path = write_ledger(tmp_path / "l", facts_with(), whole())
    own, other = account_for(path).spent, account_for(path, delta=1e-9).spent
    assert (own.delta, own.delta_mode) == (0.5 / 4478, "default")
    assert (other.delta, other.delta_mode) == (1e-9, "value")
    assert other.holds.epsilon.value > own.holds.epsilon.value
    with pytest.raises(UserError, match="1/n"):
        account_for(path, delta=1e-3)


@pytest.mark.parametrize(
    "line, words",
    [
        ('{"what": "epoch 1"', "line 3: not JSON"),
        ("[]", "line 3: not an entry"),
        ('{"what": "epoch 1"}', "line 3"),
        ("NaN", "line 3"),
        ("{SHUFFLED, z: 'x'}", "line 3"),
    ],
)
def test_damage_names_its_line(tmp_path, line, words):
    path = write_ledger(tmp_path / "l", facts_with(), whole())
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:2], line, *lines[3:]]) + "\n")
    with pytest.raises(UserError, match=words) as caught:
        account_for(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    "change, words",
    [
        ({"noise_multiplier": "x"}, "line 4: noise_multiplier is 'x'"),
        ({"noise_multiplier": -1}, "line 4: noise_multiplier is -1"),
        ({"noise_multiplier": True}, "line 4: noise_multiplier is True"),
        ({"effective_noise_multiplier": -1}, "line 4"),
        ({"count": 1.5}, "line 4"),
        ({"sampler": "poisson"}, "line 4: an event of sampler poisson"),
        ({"odd": 1}, "line 4"),
    ],
)
def test_an_entry_that_cannot_be_counted_names_its_line(tmp_path, change, words):
    lines = whole()
    lines[2] = {**lines[2], **change}
    with pytest.raises(UserError, match=words):
        account_for(write_ledger(tmp_path / "l", facts_with(), lines))


@pytest.mark.parametrize(
    "change",
    [
        {"release": None},
        {"release": {"variant": "other"}},
        {"release": "x"},
        {"decay": None},
        {"epochs": "ten"},
        {"epochs": None},
        {"num_examples": 0},
        {"noise_multiplier": None},
        {"surplus": 1},
    ],
)
def test_a_head_that_is_none_names_line_1(tmp_path, change):
    path = write_ledger(tmp_path / "l", {**facts_with(), **change}, whole())
    with pytest.raises(UserError, match="line 1"):
        account_for(path)


def test_no_mechanism_has_its_guarantee_still():
    facts = {**facts_with(mechanism="none"), "release": None}
    assert guarantee_of(facts, ()).holds.epsilon.is_infinite
