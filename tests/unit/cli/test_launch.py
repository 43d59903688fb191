"""When a job is started again, and when not: with real processes in the workers' place."""

import os
import signal
import subprocess
import sys
import threading

import pytest
from support.cli import parse

from edp_mx.cli import launch

# Ends as told by the first line of a file, which it removes; says what it was started with.
JOB = """
import os, sys
from pathlib import Path
codes = Path(sys.argv[1])
first, *rest = codes.read_text().split()
codes.write_text(" ".join(rest))
with open(sys.argv[1] + ".starts", "a") as file:
    file.write(" ".join(sys.argv[5:]) + chr(10))
os.kill(os.getpid(), int(first[1:])) if first[0] == "-" else sys.exit(int(first))
"""


@pytest.fixture
def started(tmp_path, monkeypatch, capfd):
    """`started(codes, K)`: the exit code of a job that ends with these, its starts, its words."""
    monkeypatch.setattr(launch, "FIRST_PAUSE", 0.01)
    for number in (signal.SIGINT, signal.SIGTERM):
        before = signal.getsignal(number)
        monkeypatch.setattr(launch.signal, "signal", signal.signal)
        signal.signal(number, before)

    def run(codes, most, run="run"):
        (tmp_path / "codes").write_text(codes)
        (tmp_path / "codes.starts").unlink(missing_ok=True)
        command = ["train", "some.yaml", "--run", str(tmp_path / run), "--max-restarts", str(most)]
        job = launch.Restarts(
            [sys.executable, "-c", JOB, str(tmp_path / "codes")], command, parse(*command)
        )
        code = job.run()
        return code, (tmp_path / "codes.starts").read_text().splitlines(), capfd.readouterr().err

    yield run
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


@pytest.mark.parametrize("code", ["137", "143", "139", "255", "4", "5", "-9"])
def test_a_dead_worker_a_lost_host_and_a_hang_are_tried_again(started, code):
    ended, starts, said = started(f"{code} 0", 3)
    assert ended == 0 and len(starts) == 2
    assert said == "edp-mx: restart 1 of 3 in 0 s: it begins anew\n"


@pytest.mark.parametrize("code", ["0", "1", "2", "130"])
def test_what_comes_back_is_not_tried_again(started, code):
    ended, starts, said = started(f"{code} 0", 3)
    assert ended == int(code) and len(starts) == 1 and said == ""


def test_the_last_restart_is_the_last(started):
    ended, starts, said = started("137 4 255 0", 2)
    assert ended == 255 and len(starts) == 3
    assert said.endswith("edp-mx: no restart is left (--max-restarts 2)\n")
    assert [line.split(" in ")[0] for line in said.splitlines()[:2]] == [
        "edp-mx: restart 1 of 2", "edp-mx: restart 2 of 2"
    ]  # fmt: skip


def test_a_run_that_has_begun_is_resumed(started, tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "config.yaml").write_text("training: {epochs: 3}\n")
    (folder / "environment.json").write_text("{}")
    _, starts, _ = started("137 0", 1)
    assert starts[0].startswith("train some.yaml --run")
    assert starts[1] == f"train --resume {folder} --max-restarts 1"


def test_a_run_that_has_its_results_is_not_started_again(started, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "results.json").write_text("{}")
    ended, starts, _ = started("137 0", 3)
    assert ended == 137 and len(starts) == 1


def test_a_run_without_a_name_has_the_same_folder_each_time(tmp_path):
    (tmp_path / "mine.yaml").write_text("name: mine\ntraining: {epochs: 2}\n")
    command = ["train", str(tmp_path / "mine.yaml"), "--runs", str(tmp_path / "runs"),
               "--max-restarts", "1"]  # fmt: skip
    job = launch.Restarts([], command, parse(*command))
    assert job._command[:-1] == [*command, "--run"]
    assert job._command[-1].startswith(str(tmp_path / "runs" / "mine-"))


WAITS = """
import sys, signal
from edp_mx.cli import launch, parse
launch.FIRST_PAUSE = 600.0
command = ["train", "x.yaml", "--run", sys.argv[1], "--max-restarts", "1"]
sys.exit(launch.Restarts(
    [sys.executable, "-c", "import sys, os; os.kill(os.getpid(), 9)"],
    command, parse(command),
).run())
"""


def test_a_pause_can_be_ended(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", WAITS, str(tmp_path / "run")], stderr=subprocess.PIPE, text=True
    )
    timer = threading.Timer(300, process.kill)
    timer.start()
    assert "restart 1 of 1 in 600 s" in process.stderr.readline()
    os.kill(process.pid, signal.SIGTERM)
    assert process.wait() == launch.EXIT_ASKED
    timer.cancel()


@pytest.mark.parametrize(
    "words, sentence",
    [
        (["--max-restarts", "2"], "use NP=1 launch/train.sh"),
        (["--max-restarts", "-1"], "--max-restarts is -1; it must be 0 or more"),
    ],
)
def test_restarts_need_a_process_that_outlives_the_run(words, sentence, capsys):
    from edp_mx.cli import main

    assert main(["train", "x.yaml", *words]) == 2
    assert sentence in capsys.readouterr().err
