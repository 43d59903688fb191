"""A hanging worker ends the job soon, and the job says which it was.

What hangs takes its seconds side by side: the jobs of all tests are stopped before the first waits.
"""

import os
import signal
import sys
import time

import pytest
from support.commands import QUICKSTART, finish, from_a_shell, start
from support.two_workers import LAUNCHER, a_job, pid_of, wait_for_end

SHORT = 12  # watchdog_seconds: twenty of the longest pauses

SLEEPER = """
import os, socket, sys, time
from pathlib import Path
from edp_mx.runtime.watchdog import Peer, Watchdog

me = Peer(0, os.getpid(), socket.gethostname())
with Watchdog(peers=[me], rank=0, seconds=7, folder=Path(sys.argv[1])):
    print("ready", flush=True)
    for _ in range(50 if sys.argv[2] == "hangs" else 15):
        time.sleep(0.2)
"""


@pytest.fixture(scope="module", autouse=True)
def sleepers(tmp_path_factory):
    """Two jobs of one worker, of which one is suspended, and when that was."""
    jobs, folder = {}, tmp_path_factory.mktemp("sleepers")
    for what in ("suspended", "hangs"):
        jobs[what] = start(sys.executable, "-c", SLEEPER, folder / what, what)
    assert all(job.stdout.readline() == "ready\n" for job in jobs.values())
    os.kill(jobs["suspended"].pid, signal.SIGSTOP)
    yield jobs, time.monotonic()
    for job in jobs.values():
        job.kill()
        job.communicate()


@pytest.fixture(scope="module", autouse=True)
def hanging(sleepers, tmp_path_factory):
    """A job whose second worker is stopped, the file of its output, and the time of the stop."""
    folder = tmp_path_factory.mktemp("hanging")
    with a_job(folder, SHORT) as process:
        os.kill(pid_of(folder / "run", 1), signal.SIGSTOP)
        yield process, folder / "output", time.time()


def test_an_error_of_the_user_is_said_once(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "precious").write_text("mine")
    refused = from_a_shell(LAUNCHER, QUICKSTART, "--run", tmp_path / "run", code=2, NP="2")
    assert refused.stderr.count("is not empty; choose another --run") == 1
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["precious"]


def test_a_hanging_worker_ends_the_job_and_is_named(hanging):
    process, output, stopped = hanging
    words = f"nothing has moved for {SHORT} s", "worker 1 is stopped"
    code, said = wait_for_end(process, output, words)
    assert code != 0
    assert all(part in said for part in words), said
    assert output.stat().st_mtime - stopped > 4  # it was given time


def test_a_job_that_hangs_is_ended_and_one_that_was_suspended_is_not(sleepers):
    jobs, stopped = sleepers
    time.sleep(max(0, stopped + 8 - time.monotonic()))  # more than the seven seconds
    os.kill(jobs["suspended"].pid, signal.SIGCONT)
    assert "nothing has moved for 7 s" not in finish(jobs["suspended"]).stderr
    assert "nothing has moved for 7 s" in finish(jobs["hangs"], 4).stderr
