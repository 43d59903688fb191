"""Processes that take turns: they answer, stand still otherwise, and end."""

import os
import sys
import time
from pathlib import Path

import pytest
from jobs import Job

ENVIRONMENT = {"PYTHONPATH": str(Path(__file__).resolve().parents[3] / "benchmarks")}
ANSWERS = "import os, sys, jobs; jobs.serve(sys.argv[1], lambda n: (n * 2, os.getpid()))"
FAILS = "import sys, jobs; jobs.serve(sys.argv[1], lambda n: sys.exit(3))"
TWICE = """import subprocess, sys
started = [subprocess.Popen(sys.argv[1:]) for _ in range(2)]
[process.wait() for process in started]"""


def command(program):
    return [sys.executable, "-c", program]


def comes_to(pid, states):
    """Whether a process is in one of these states ("T" is stopped) within a minute."""
    for _ in range(1200):
        stat = Path(f"/proc/{pid}/stat")
        if (stat.read_text().rpartition(")")[2].split()[0] if stat.exists() else "gone") in states:
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("size", [1, 2])
def test_all_processes_answer_stand_still_between_turns_and_end(size):
    program = command(ANSWERS) if size == 1 else [*command(TWICE), *command(ANSWERS)]
    job = Job(program, size=size, environment=ENVIRONMENT)
    try:
        for order in (21, 4):
            doubled, pids = zip(*job.turn(order))
            assert doubled == (2 * order,) * size
            assert len(set(pids)) == size and os.getpid() not in pids
            assert all(comes_to(pid, "T") for pid in pids)
    finally:
        job.close()
    assert all(comes_to(pid, ("gone", "Z")) for pid in pids)


@pytest.mark.parametrize("program", ["raise SystemExit(3)", FAILS])
def test_a_job_that_fails_ends_the_benchmark(program):
    with pytest.raises(SystemExit, match="ended or hung"):
        Job(command(program), environment=ENVIRONMENT).turn(1)
