"""A text that a small BERT learns in seconds, and runs over it through the real command line."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from support.workers import PATIENCE, WAITING

ROOT = Path(__file__).resolve().parents[2]
WORDS = ("call", "mum", "play", "jazz", "stop", "set", "alarm", "light", "rain", "time", "lamp",
         "song")  # fmt: skip
CONFIG = """
name: copies
text: {{train: [{text}], buffer_size: 200}}
vocabulary: {{size: 100}}
model: {{family: bert, num_layers: 1, num_heads: 2, hidden_size: 64, intermediate_size: 32,
  max_positions: 16, dropout: 0.1}}
pretraining: {{epochs: 2, batch_size: 16, learning_rate: 0.003, max_pieces: 16, log_every: 5,
  checkpoint_every: 10, evaluate_every: 20, watchdog_seconds: 300}}
"""


def write_config(folder, lines=2000):
    """Each line says one word six times and a number: a masked piece stands beside its copies."""
    generator = np.random.default_rng(5)
    text = folder / "text.txt"
    text.write_text("".join(
        f"{' '.join([WORDS[i]] * 6)} {n}\n"
        for n, i in enumerate(generator.integers(0, len(WORDS), lines))
    ))  # fmt: skip
    (folder / "copies.yaml").write_text(CONFIG.format(text=text))
    return folder / "copies.yaml"


def command(num_workers, *arguments):
    """`edp-mx pretrain`, or with several workers its launcher."""
    if num_workers == 1:
        return [sys.executable, "-m", "edp_mx", "pretrain", *map(str, arguments)]
    return [str(ROOT / "launch" / "pretrain.sh"), *map(str, arguments)]


def start(num_workers, *arguments):
    """A process that runs it."""
    environment = {**os.environ, "NP": str(num_workers), "OMP_NUM_THREADS": "1",
                   "PYTHONPATH": str(ROOT), **WAITING}  # fmt: skip
    return subprocess.Popen(
        command(num_workers, *arguments),
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def finish(process, code=0):
    """What it wrote, when it has ended as expected."""
    try:
        output, errors = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGTERM)
        raise
    assert process.returncode == code, errors
    return output, errors


def rows(run):
    """The lines of the log without what depends on the clock."""
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in line.items() if k != "pieces_per_second"} for line in lines]


def kill_in_the_middle(process, run, rank, after):
    """Kills a worker with -9 when so many lines are in the log; the step that it had logged."""
    log, deadline = run / "metrics.jsonl", time.monotonic() + PATIENCE
    while not log.exists() or log.read_text().count("\n") < after:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    worker = json.loads((run / ".workers" / f"worker_{rank}.json").read_text())
    os.kill(worker["pid"], signal.SIGKILL)
    process.communicate(timeout=PATIENCE)
    assert not (run / "results.json").exists() and (run / "checkpoint.npz").exists()
    return json.loads(log.read_text().splitlines()[-1])["step"]
