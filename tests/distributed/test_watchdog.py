"""A killed or hanging worker ends the job soon, and the job says which it was."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = [
    "data.size=800",
    "data.embeddings.dimension=16",
    "model.hidden_size=16",
    "training.epochs=1000",
    "training.watchdog_seconds=6",
]


@pytest.fixture
def job(tmp_path):
    """A training job of two workers, in the middle of its epochs."""
    environment = {**os.environ, "NP": "2"}
    command = [
        ROOT / "launch" / "train.sh",
        ROOT / "configs" / "quickstart_sgd.yaml",
        "--run",
        tmp_path / "run",
        "--set",
        *SETTINGS,
    ]
    with open(tmp_path / "output", "w") as output:
        process = subprocess.Popen(
            [str(part) for part in command],
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=tmp_path,
        )
    deadline = time.monotonic() + 120
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


def wait_for_end(process, seconds):
    started = time.monotonic()
    code = process.wait(timeout=seconds)
    time.sleep(0.5)  # the last lines pass through a pipe
    return code, time.monotonic() - started


@pytest.mark.parametrize("rank", [0, 1])
def test_a_killed_worker_ends_the_job_and_is_named(job, rank):
    process, folder = job
    os.kill(pid_of(folder / "run", rank), signal.SIGKILL)
    code, _ = wait_for_end(process, 10)
    output = (folder / "output").read_text()
    assert code != 0
    assert f"worker {rank} (process" in output and "died without a word" in output
    assert "Traceback" not in output
    assert not (folder / "run" / "results.json").exists()


def test_a_hanging_worker_ends_the_job_and_is_named(job):
    process, folder = job
    os.kill(pid_of(folder / "run", 1), signal.SIGSTOP)
    code, seconds = wait_for_end(process, 40)
    output = (folder / "output").read_text()
    assert code != 0
    assert "nothing has moved for 6 s" in output
    assert "worker 1 is stopped" in output
    assert seconds > 4


def test_an_error_that_only_training_finds_is_said_once_too(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "precious").write_text("mine")
    result = subprocess.run(
        [str(ROOT / "launch" / "train.sh"), str(ROOT / "configs" / "quickstart_sgd.yaml"),
         "--run", str(tmp_path / "run")], env={**os.environ, "NP": "2"}, capture_output=True,
        text=True, timeout=60)  # fmt: skip
    assert result.returncode != 0
    assert result.stderr.count("is not empty; choose another --run") == 1
    assert "Traceback" not in result.stderr + result.stdout
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["precious"]


def test_an_error_of_the_user_is_said_once_and_without_a_traceback(tmp_path):
    result = subprocess.run(
        [
            str(ROOT / "launch" / "train.sh"),
            str(ROOT / "configs" / "quickstart_sgd.yaml"),
            "--run",
            str(tmp_path / "run"),
            "--set",
            "training.epoch=3",
        ],
        env={**os.environ, "NP": "2"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert result.returncode == 2
    assert result.stderr.count("training.epoch: there is no such key; did you mean epochs?") == 1
    assert "Traceback" not in result.stderr + result.stdout
    assert not (tmp_path / "run").exists()
