"""A text that a small BERT learns in seconds, and runs over it through the real command line."""

import json
import os
import signal

import numpy as np
from support import commands
from support.commands import ROOT, finish, lines_of, wait_for
from support.workers import PATIENCE

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


def start(num_workers, *arguments):
    """`edp-mx pretrain` in the background, or with several workers its launcher."""
    if num_workers == 1:
        return commands.start("pretrain", *arguments)
    return commands.start(ROOT / "launch" / "pretrain.sh", *arguments, NP=str(num_workers))


def pretrain(num_workers, *arguments, code=0):
    """Runs it to its end."""
    return finish(start(num_workers, *arguments), code)


def rows(run):
    """The lines of the log without what depends on the clock."""
    return [
        {k: v for k, v in row.items() if k != "pieces_per_second"} for row in commands.rows(run)
    ]


def kill_in_the_middle(run, *arguments, num_workers=1, rank=0, after=9):
    """Runs until so many lines are in the log, and kills a worker with -9."""
    process = start(num_workers, *arguments, "--run", run)
    wait_for(lambda: lines_of(run / "metrics.jsonl") >= after, process)
    worker = json.loads((run / ".workers" / f"worker_{rank}.json").read_text())
    os.kill(worker["pid"], signal.SIGKILL)
    process.communicate(timeout=PATIENCE)
    assert not (run / "results.json").exists() and (run / "checkpoint.npz").exists()
