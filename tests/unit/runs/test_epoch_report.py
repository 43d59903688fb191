"""What is said at the end of an epoch: both ε so far, and when they are counted."""

import math

import pytest
from support.made_ledgers import plan_with

from edp_mx.dp.accounting.guarantee import guarantee
from edp_mx.runs import epoch_report
from edp_mx.runs.epoch_report import EpochLines, EpsilonSoFar, describe_epoch
from edp_mx.tasks.intent_slot.task import INTENT_SLOT
from edp_mx.training.loop import EpochSummary

ROW = {"epoch": 2, "loss": 1.25, "ser": 40.0, "intent_accuracy": 81.26, "slot_f1": 60.0,
       "seconds": 12.0, "clock_seconds": 30.0}  # fmt: skip


class Spending:
    """What has been spent after some epochs; counting takes some seconds."""

    def __init__(self, clock, takes, **changes):
        self.plan, self.clock, self.takes, self.epochs = plan_with(**changes), clock, takes, 0

    def spent(self):
        self.clock[0] += self.takes
        return guarantee(self.plan, self.plan.entries()[: self.epochs])


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(epoch_report.time, "perf_counter", lambda: now[0])
    return now


def test_each_epoch_has_the_epsilon_of_what_the_ledger_has(clock):
    spending = Spending(clock, takes=0.01, private_inputs=("vocabulary",))
    counter = EpsilonSoFar(spending)
    for epoch in range(4):
        spending.epochs = epoch + 1
        found = counter.after(EpochSummary(epoch, 69, 1.0, 10.0, 9.0), is_last=epoch == 3)
        expected = guarantee(spending.plan, spending.plan.entries()[: epoch + 1])
        assert found["epsilon_as_published"] == expected.as_published.epsilon.value
        assert found["epsilon_holds_if"] == expected.holds_if.epsilon.value
        assert found["epsilon_holds"] == math.inf


def test_slow_counts_are_left_out_but_the_last(clock):
    counter = EpsilonSoFar(Spending(clock, takes=2.0))
    last = 99
    counted = [
        bool(counter.after(EpochSummary(epoch, 69, 1.0, 4.0, 3.0), is_last=epoch == last))
        for epoch in range(last + 1)
    ]
    assert counted[0] and counted[last]
    assert clock[0] <= (epoch_report.SHARE * 400 + 2.0) + 2.0


def test_without_a_mechanism_there_is_no_epsilon(clock):
    spending = Spending(clock, takes=0.0)
    spending.plan = plan_with()
    object.__setattr__(spending.plan, "release", None)
    assert EpsilonSoFar(spending).after(EpochSummary(0, 1, 1.0, 1.0, 1.0), is_last=True) == {}
    text = describe_epoch({**ROW, "epoch": 4}, 4, INTENT_SLOT, left=0.0)
    assert "ε" not in text and "left" not in text


def test_the_line_of_an_epoch_has_scores_epsilon_clipping_and_time_left():
    row = {**ROW, "clipped_fraction": 0.925, "epsilon_as_published": 3.0,
           "epsilon_holds": math.inf, "epsilon_holds_if": 2.2e6}  # fmt: skip
    first, second = describe_epoch(row, 4, INTENT_SLOT, left=100.0).splitlines()
    assert first == (
        "epoch 2/4: loss 1.2500, validation SER 40.00 %, intent accuracy 81.26 %, slot F1 60.00 %"
    )
    assert second == (
        "  ε so far ∞ (2.2 million on conditions; 3 as published), 92 % clipped, "
        "30 s an epoch, about 2 min left"
    )


def test_short_epochs_are_told_of_now_and_then_with_the_time_that_is_left(caplog):
    lines = EpochLines(50, INTENT_SLOT, done=10)
    with caplog.at_level("INFO", logger="edp_mx"):
        for epoch in range(11, 42):
            lines.tell({**ROW, "epoch": epoch, "clock_seconds": 0.5}, is_last=epoch == 41)
    said = [record.getMessage() for record in caplog.records]
    told = [int(text.split()[1].partition("/")[0]) for text in said]
    assert told == [11, 15, 19, 23, 27, 31, 35, 39, 41]  # it may end early
    assert said[0].endswith("0.5 s an epoch, about 20 s left") and "about 4 s left" in said[-1]
