"""A killed or hanging worker ends the job soon, and the job says which it was."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.workers import PATIENCE, WAITING

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = [
    "data.size=null",
    "data.corpus=mine",
    "data.vocabulary.source=train",
    "data.labels.source=train",
    "data.embeddings.dimension=16",
    "model.hidden_size=16",
    "training.epochs=100000",
]
LONG, SHORT = 3600, 12  # watchdog_seconds: no test is as long; twenty of the longest pauses


@pytest.fixture
def job(tmp_path, request):
    """A training job of two workers, in the middle of its epochs."""
    environment = {**os.environ, **WAITING, "NP": "2"}
    lines = [{"tokens": ["call", f"friend{i}"], "slots": ["O", "B-contact"], "intent": "call"}
             for i in range(200)]  # fmt: skip
    (tmp_path / "mine.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    command = [
        ROOT / "launch" / "train.sh",
        ROOT / "configs" / "quickstart.yaml",
        "--run",
        tmp_path / "run",
        "--set",
        *SETTINGS,
        f"data.path={tmp_path / 'mine.jsonl'}",
        f"training.watchdog_seconds={request.param}",
    ]
    with open(tmp_path / "output", "w") as output:
        process = subprocess.Popen(
            [str(part) for part in command],
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=tmp_path,
        )
    deadline = time.monotonic() + PATIENCE
    while not (tmp_path / "run" / "metrics.jsonl").exists() or not (
        tmp_path / "run" / "metrics.jsonl"
    ).read_text().count("\n"):
        assert process.poll() is None and time.monotonic() < deadline, (
            tmp_path / "output"
        ).read_text()
        time.sleep(0.2)
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
@pytest.mark.parametrize("rank", [0, 1])
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


def test_an_error_that_only_training_finds_is_said_once_too(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "precious").write_text("mine")
    result = subprocess.run(
        [str(ROOT / "launch" / "train.sh"), str(ROOT / "configs" / "quickstart.yaml"),
         "--run", str(tmp_path / "run")], env={**os.environ, **WAITING, "NP": "2"},
        capture_output=True, text=True, timeout=PATIENCE)  # fmt: skip
    assert result.returncode != 0
    assert result.stderr.count("is not empty; choose another --run") == 1
    assert "Traceback" not in result.stderr + result.stdout
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["precious"]


def test_an_error_of_the_user_is_said_once_and_without_a_traceback(tmp_path):
    result = subprocess.run(
        [
            str(ROOT / "launch" / "train.sh"),
            str(ROOT / "configs" / "quickstart.yaml"),
            "--run",
            str(tmp_path / "run"),
            "--set",
            "training.epoch=3",
        ],
        env={**os.environ, "NP": "2"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert result.returncode == 2
    assert result.stderr.count("training.epoch: there is no such key; did you mean epochs?") == 1
    assert "Traceback" not in result.stderr + result.stdout
    assert not (tmp_path / "run").exists()


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
    command = [sys.executable, "-c", SLEEPER, str(tmp_path / "workers"), what]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert process.stdout.readline() == "ready\n"
    if what == "suspended":
        os.kill(process.pid, signal.SIGSTOP)
        time.sleep(8)  # more than the seven seconds
        os.kill(process.pid, signal.SIGCONT)
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == code, errors
    assert ("nothing has moved for 7 s" in errors) is (code == 4)
