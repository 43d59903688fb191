"""The real command line, here or in processes of its own, and what its runs leave behind."""

import io
import json
import logging
import os
import signal
import subprocess
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest import mock

import numpy as np
from support.workers import PATIENCE, WAITING

from edp_mx.cli import main
from edp_mx.reports import curves  # noqa: F401 (at once, so that conftest makes it lighter)
from edp_mx.runs import build  # noqa: F401 (the same)
from edp_mx.training.loop import TrainingLoop
from experiments.command import main as experiments_main

ROOT = Path(__file__).resolve().parents[2]
CONFIGS = ROOT / "configs"
QUICKSTART = CONFIGS / "quickstart.yaml"
LANGUAGE_MODEL = ROOT / "tests" / "support" / "language_model.yaml"
CALIBRATED = [QUICKSTART, CONFIGS / "mechanism" / "edp_calibrated.yaml"]
TINY = ["data.embeddings.dimension=8", "model.hidden_size=8", "model.character_filters=4",
        "training.batch_size=16"]  # fmt: skip
NO_DECAY = ["privacy.decay.kind=none", "privacy.decay.rate=0"]


def start(*command, output=subprocess.PIPE, **environment):
    """A command in the background, of `edp-mx`, of the experiments, or with a program's path."""
    if not Path(command[0]).is_absolute():
        module = "" if command[0].startswith("experiments.") else "edp_mx"
        command = (sys.executable, "-m", *filter(None, [module]), *command)
    return subprocess.Popen(
        [str(part) for part in command],
        text=True,
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=output,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), **WAITING,
             **environment},
        start_new_session=True,
        # It hears of a closed terminal also where the tests run under nohup.
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
    )  # fmt: skip


def finish(process, code=0):
    """What it wrote, `.stdout` and `.stderr`, when it has ended as expected."""
    try:
        output, errors = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGTERM)
        raise
    assert process.returncode == code and "Traceback" not in errors, errors
    return subprocess.CompletedProcess(process.args, code, output, errors)


def from_a_shell(*command, code=0, **environment):
    """Runs a command to its end, in a process of its own."""
    return finish(start(*command, **environment), code)


def edp_mx(*command, code=0, text=""):
    """Runs a subcommand, or `experiments.<name>`, in this process, which spares it the start."""
    output, errors = io.StringIO(), io.StringIO()
    given = mock.patch("sys.stdin", io.StringIO(text))
    with redirect_stdout(output), redirect_stderr(errors), given:
        name, *words = map(str, command)
        is_ours = not name.startswith("experiments.")
        ended = main([name, *words]) if is_ours else experiments_main(name.split(".")[1], words)
    log = logging.getLogger("edp_mx")
    while log.handlers:
        log.handlers.pop().close()
    assert ended == code, errors.getvalue()
    return subprocess.CompletedProcess(command, code, output.getvalue(), errors.getvalue())


def interrupted(*command, after):
    """A training in this process that is interrupted when so many steps were taken."""
    taken, step = [], TrainingLoop._step

    def counted(*arguments):
        if len(taken) == after:
            raise KeyboardInterrupt
        taken.append(1)
        return step(*arguments)

    with mock.patch.object(TrainingLoop, "_step", counted):
        return edp_mx(*command, code=130)


def wait_for(is_there, process, pause=0.01):
    """Waits until a running command has got so far, with so many seconds between two looks."""
    deadline = time.monotonic() + PATIENCE
    while not is_there():
        assert process.poll() is None or is_there(), process.communicate()
        assert time.monotonic() < deadline
        time.sleep(pause)


def lines_of(path):
    """How many lines a file has that may not be there yet."""
    return path.read_text().count("\n") if path.exists() else 0


def read(run, name):
    return json.loads((run / f"{name}.json").read_text())


def rows(run):
    """The lines of the log, each a dict."""
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def weights(run):
    with np.load(run / "weights.npz") as archive:
        return {name: archive[name] for name in archive.files}


def assert_is_whole(run):
    """The README of a run tells of each of its files."""
    readme = (run / "README.md").read_text()
    for path in run.iterdir():
        name = "rank_<i>.log" if path.name.startswith("rank_") else path.name
        assert path.name == "README.md" or f"`{name}" in readme, path.name
