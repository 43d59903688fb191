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
task: masked_lm
data: {{corpus: copies, path: {text}, split: 80/10/10, max_pieces: 16,
  vocabulary: {{max_words: 100}}}}
model: {{family: bert, num_layers: 1, num_heads: 2, hidden_size: 64, intermediate_size: 32,
  max_positions: 16, dropout: 0.1}}
privacy: {{mechanism: none, unit: null, adjacency: zero_out}}
training: {{epochs: 3, batch_size: 16, learning_rate: 0.003, length_buckets: 2,
  schedule: {{kind: linear, warmup_fraction: 0.1}}, checkpoints: {{every_steps: 10}},
  watchdog_seconds: 300}}
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
    """`edp-mx train` in the background, or with several workers the launcher."""
    if num_workers == 1:
        return commands.start("train", *arguments)
    return commands.start(ROOT / "launch" / "pretrain.sh", *arguments, NP=str(num_workers))


def pretrain(num_workers, *arguments, code=0):
    """Runs it to its end."""
    return finish(start(num_workers, *arguments), code)


def rows(run):
    """The lines of the log without what depends on the clock."""
    return [{k: v for k, v in row.items() if "seconds" not in k} for row in commands.rows(run)]


def kill_in_the_middle(run, *arguments, num_workers=1, rank=0):
    """Runs until an epoch is in the log, and kills a worker with -9."""
    process = start(num_workers, *arguments, "--run", run)
    wait_for(lambda: lines_of(run / "metrics.jsonl") >= 1, process)
    worker = json.loads((run / ".workers" / f"worker_{rank}.json").read_text())
    os.kill(worker["pid"], signal.SIGKILL)
    process.communicate(timeout=PATIENCE)
    assert not (run / "results.json").exists() and (run / "checkpoint.npz").exists()
