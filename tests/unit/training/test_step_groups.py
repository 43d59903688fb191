"""How many steps lie between two checkpoints, by number and by the clock."""

import pytest

from edp_mx.training.config import Checkpoints
from edp_mx.training.step_groups import Pace


def stretches(config, steps, *, epochs=1, seconds=lambda step: 1.0):
    """The steps after which a checkpoint was due, the lengths of stretches, and the times of both.

    `seconds` says how long a step takes.
    """
    now = [0.0]
    pace = Pace(config, clock=lambda: now[0])
    saved, lengths, times = [], [], []
    for _ in range(epochs):
        step = 0
        while step < steps:
            count = pace.stretch(step, steps - step)
            assert 1 <= count <= steps - step
            lengths.append(count)
            for _ in range(count):
                now[0] += seconds(step)
                step += 1
            if pace.is_due(step) and step < steps:
                pace.saved()
                saved.append(step)
                times.append(now[0])
        pace.saved()
    return saved, lengths, times


def test_without_settings_an_epoch_is_one_stretch():
    assert stretches(Checkpoints(), 69, epochs=2)[:2] == ([], [69, 69])


def test_every_so_many_steps_of_an_epoch():
    assert stretches(Checkpoints(every_steps=30), 69, epochs=2)[:2] == (
        [30, 60] * 2,
        [30, 30, 9] * 2,
    )
    pace = Pace(Checkpoints(every_steps=30))
    assert pace.stretch(45, 24) == 15  # resumed in between: the same places as before


@pytest.mark.parametrize("fast", [0.001, 0.1, 2.0, 50.0])
def test_every_so_many_minutes_whatever_a_step_takes(fast):
    steps = int(4000 / fast) + 1
    _, lengths, times = stretches(Checkpoints(every_minutes=10), steps, seconds=lambda _: fast)
    gaps = [later - earlier for earlier, later in zip([0.0, *times], times)]
    assert len(times) >= 6 or 8 * fast > 300
    assert all(570 - 1e-6 <= gap <= max(660, 8 * fast) for gap in gaps)
    assert len(lengths) <= 40 + 2 * len(times)  # each is a line of the ledger


def test_a_machine_that_becomes_slow_is_late_by_one_stretch_at_most():
    _, _, times = stretches(
        Checkpoints(every_minutes=1), 4000, seconds=lambda s: 0.1 * (1 + 9 * (s > 1500))
    )
    gaps = [later - earlier for earlier, later in zip([0.0, *times], times)]
    assert max(gaps) <= 60 * 10 and sorted(gaps)[len(gaps) // 2] <= 61


def test_both_the_first_of_the_two():
    config = Checkpoints(every_steps=100, every_minutes=1)
    saved, _, _ = stretches(config, 300, seconds=lambda step: 0.1 if step < 100 else 1.5)
    assert saved == [100, 200, 241, 282]  # the clock decides only where steps are slow
