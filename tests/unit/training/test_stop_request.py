"""Workers that are asked at different steps end after the same one."""

from edp_mx.runtime.distributed import Workers
from edp_mx.training.step_groups import EVERY, Ending


def test_one_worker_answers_for_itself():
    asked = [False, False, True]
    ending = Ending(Workers(0, 1, 0), iter(asked).__next__)
    assert [ending.is_due() for _ in asked] == asked


def test_the_question_is_put_about_once_a_second_and_any_worker_may_have_been_asked():
    now, rounds = [0.0], []

    class Two(Workers):
        def gather(self, value):
            rounds.append(now[0])
            return [value, (now[0] > 20, 999)]  # the other worker was asked after 20 s

    ending = Ending(Two(0, 2, 0), lambda: False, clock=lambda: now[0])
    for _ in range(10_000):
        now[0] += 0.01  # of a step
        if ending.is_due():
            break
    assert 20 < now[0] < 20 + 2 * EVERY
    assert len(rounds) < 2 * 20 / EVERY
    assert rounds[0] < 0.1  # asked early, then less and less often
