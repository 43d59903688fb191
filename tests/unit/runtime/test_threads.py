"""Threads: every item once, in order, errors heard, none left over, never more than allowed."""

import os
import subprocess
import sys
import threading

import pytest

from edp_mx.runtime.threads import allowed_threads, in_threads


@pytest.mark.parametrize("threads", [0, 1, 2, 5, 50])
@pytest.mark.parametrize("size", [0, 1, 2, 31])
def test_results_come_in_the_order_of_the_items(threads, size):
    taken = []

    def work(item):
        taken.append(item)
        return item**2

    assert in_threads(work, range(size), threads=threads) == [i**2 for i in range(size)]
    assert sorted(taken) == list(range(size))


def test_they_work_at_the_same_time_and_are_gone_afterwards():
    before, meeting = set(threading.enumerate()), threading.Barrier(3, timeout=120)
    in_threads(lambda _: meeting.wait(), range(3), threads=3)
    assert set(threading.enumerate()) <= before  # another test's may have ended meanwhile


@pytest.mark.parametrize("is_caller", [True, False])
def test_an_error_is_heard_whoever_makes_it(is_caller):
    meeting = threading.Barrier(2, timeout=120)

    def work(item):
        meeting.wait()
        if (threading.current_thread() is threading.main_thread()) == is_caller:
            raise KeyError("lost")

    with pytest.raises(KeyError, match="lost"):
        in_threads(work, range(2), threads=2)


@pytest.mark.parametrize(
    "variables, threads",
    [
        ({}, 8),
        ({"OMP_NUM_THREADS": "3"}, 3),
        ({"OMP_NUM_THREADS": "100"}, 8),
        ({"OMP_NUM_THREADS": "2,1"}, 2),
        ({"OMP_NUM_THREADS": "0"}, 8),
        ({"OMP_NUM_THREADS": "many"}, 8),
        ({"HOROVOD_LOCAL_SIZE": "3"}, 2),
        ({"HOROVOD_LOCAL_SIZE": "9"}, 1),
        ({"HOROVOD_LOCAL_SIZE": "2", "OMP_NUM_THREADS": "1"}, 1),
    ],
)
def test_how_many_are_allowed_on_eight_cores(monkeypatch, variables, threads):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    for name in ("OMP_NUM_THREADS", "HOROVOD_LOCAL_SIZE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert allowed_threads() == threads


@pytest.mark.parametrize("workers, given, expected", [
    ("1", None, str(len(os.sched_getaffinity(0)))), ("1000", None, "1"), ("1", "3", "3"),
    (None, None, "None"),
])  # fmt: skip
def test_workers_share_the_cores_before_anything_counts_them(workers, given, expected):
    names = {"HOROVOD_LOCAL_SIZE": workers, "OMP_NUM_THREADS": given}
    environment = {name: value for name, value in os.environ.items() if name not in names}
    environment.update({name: value for name, value in names.items() if value is not None})
    code = (
        "import edp_mx, os, sys; print(os.environ.get('OMP_NUM_THREADS'), 'numpy' in sys.modules)"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True
    )
    assert found.stdout.split() == [expected, "False"], found.stderr
