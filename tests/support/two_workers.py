"""A real training job of two workers, in the middle of its epochs, and what it says at its end."""

import json
import subprocess
import time
from contextlib import contextmanager

from support import commands
from support.commands import QUICKSTART, ROOT, lines_of, start, wait_for
from support.workers import PATIENCE

LAUNCHER = ROOT / "launch" / "train.sh"


@contextmanager
def a_job(folder, seconds, look=lambda process: None):
    """A training job of two workers, in the middle of its epochs; looked at while it starts."""
    line = '{{"tokens": ["call", "friend{}"], "slots": ["O", "B-contact"], "intent": "call"}}\n'
    (folder / "mine.jsonl").write_text("".join(map(line.format, range(200))))
    settings = [*commands.TINY, "data.size=null", "data.corpus=mine", "training.epochs=100000",
                "data.vocabulary.source=train", "data.labels.source=train",
                f"data.path={folder / 'mine.jsonl'}",
                f"training.watchdog_seconds={seconds}"]  # fmt: skip
    with open(folder / "output", "w") as output:
        process = start(LAUNCHER, QUICKSTART, "--run", folder / "run", "--set", *settings,
                        output=output, NP="2")  # fmt: skip
    metrics = folder / "run" / "metrics.jsonl"
    wait_for(lambda: look(process) or lines_of(metrics), process, pause=0.1)  # the cores are its
    yield process
    process.kill()
    subprocess.run(["pkill", "-KILL", "-f", str(folder)], check=False)


def pid_of(run, rank):
    return json.loads((run / ".workers" / f"worker_{rank}.json").read_text())["pid"]


def wait_for_end(process, file, words):
    """The exit code, and the output when it has these words: they pass through a pipe."""
    code, deadline = process.wait(timeout=PATIENCE), time.monotonic() + 60
    while not all(part in file.read_text() for part in words) and time.monotonic() < deadline:
        time.sleep(0.2)
    return code, file.read_text()
