"""A killed or hanging worker ends the job soon, and the job says which it was."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from support import commands
from support.commands import QUICKSTART, ROOT, finish, from_a_shell, lines_of, start, wait_for
from support.workers import PATIENCE

LAUNCHER = ROOT / "launch" / "train.sh"
LONG, SHORT = 3600, 12  # watchdog_seconds: no test is as long; twenty of the longest pauses


@pytest.fixture
def job(tmp_path, request):
    """A training job of two workers, in the middle of its epochs."""
    line = '{{"tokens": ["call", "friend{}"], "slots": ["O", "B-contact"], "intent": "call"}}\n'
    (tmp_path / "mine.jsonl").write_text("".join(map(line.format, range(200))))
    settings = [*commands.TINY, "data.size=null", "data.corpus=mine", "training.epochs=100000",
                "data.vocabulary.source=train", "data.labels.source=train",
                f"data.path={tmp_path / 'mine.jsonl'}",
                f"training.watchdog_seconds={request.param}"]  # fmt: skip
    with open(tmp_path / "output", "w") as output:
        process = start(LAUNCHER, QUICKSTART, "--run", tmp_path / "run", "--set", *settings,
                        output=output, NP="2")  # fmt: skip
    wait_for(lambda: lines_of(tmp_path / "run" / "metrics.jsonl"), process)
    yield process, tmp_path
    process.kill()
    subprocess.run(["pkill", "-KILL", "-f", str(tmp_path)], check=False)


def pid_of(run, rank):
    return json.loads((run / ".workers" / f"worker_{rank}.json").read_text())["pid"]


def wait_for_end(process, file, words):
    """The exit code, and the output when it has these words: they pass through a pipe."""
    code, deadline = process.wait(timeout=PATIENCE), time.monotonic() + 60
    while not all(part in file.read_text() for part in words) and time.monotonic() < deadline:
        time.sleep(0.2)
    return code, file.read_text()


@pytest.mark.parametrize("job", [LONG], indirect=True)
@pytest.mark.parametrize("rank", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_a_killed_worker_ends_the_job_and_is_named(job, rank):
    process, folder = job
    os.kill(pid_of(folder / "run", rank), signal.SIGKILL)
    words = f"worker {rank} (process", "died without a word"
    code, output = wait_for_end(process, folder / "output", words)
    assert code != 0
    assert all(part in output for part in words), output
    assert "Traceback" not in output
    assert not (folder / "run" / "results.json").exists()


@pytest.mark.parametrize("job", [SHORT], indirect=True)
def test_a_hanging_worker_ends_the_job_and_is_named(job):
    process, folder = job
    started = time.monotonic()
    os.kill(pid_of(folder / "run", 1), signal.SIGSTOP)
    words = f"nothing has moved for {SHORT} s", "worker 1 is stopped"
    code, output = wait_for_end(process, folder / "output", words)
    assert code != 0
    assert all(part in output for part in words), output
    assert time.monotonic() - started > 4  # it was given time


def test_an_error_of_the_user_is_said_once(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "precious").write_text("mine")
    refused = from_a_shell(LAUNCHER, QUICKSTART, "--run", tmp_path / "run", code=2, NP="2")
    assert refused.stderr.count("is not empty; choose another --run") == 1
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["precious"]


SLEEPER = """
import sys, time
from pathlib import Path
from edp_mx.runtime.watchdog import Peer, Watchdog

with Watchdog(peers=[Peer.myself(0)], rank=0, seconds=7, folder=Path(sys.argv[1])):
    print("ready", flush=True)
    for _ in range(50 if sys.argv[2] == "hangs" else 15):
        time.sleep(0.2)
"""


@pytest.mark.parametrize("what, code", [("suspended", 0), ("hangs", 4)])
def test_a_job_that_was_suspended_does_not_count_as_hanging(what, code, tmp_path):
    process = start(sys.executable, "-c", SLEEPER, tmp_path / "workers", what)
    assert process.stdout.readline() == "ready\n"
    if what == "suspended":
        os.kill(process.pid, signal.SIGSTOP)
        time.sleep(8)  # more than the seven seconds
        os.kill(process.pid, signal.SIGCONT)
    assert ("nothing has moved for 7 s" in finish(process, code).stderr) is (code == 4)
