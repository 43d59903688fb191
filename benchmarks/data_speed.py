"""How fast a corpus is ready and its batches are made, and the memory that both take.

Run: .venv/bin/python benchmarks/data_speed.py [--size N …] [--rounds 5] [--json FILE]

A start is a process from the configuration to the first batch, once cold, when the corpus is made
and cached, and `--rounds` times warm. Memory is the peak beyond the imports, without the mapped
pages of the corpus' files. Batches are made in turn with SGD's steps at the paper's sizes.
"""

import argparse
import json
import os
import tempfile
import threading
import time
from typing import Dict, List

import measuring
import numpy as np
from steps import VARIANTS
from subjects import Subject, paper_model, synthetic_batch

from edp_mx.config import ExperimentConfig
from edp_mx.data.config import DataConfig
from edp_mx.data.corpus import load_corpus
from edp_mx.data.encoding import EncodedCorpus
from edp_mx.data.labels import LabelsConfig
from edp_mx.data.vocabulary import VocabularyConfig
from edp_mx.dp.sampling.shuffle import Shard
from edp_mx.models.bert import BERTConfig
from edp_mx.models.clc import CLCConfig
from edp_mx.reports.table import render_table, show_quartiles
from edp_mx.runs.build import encode_parts, vocabulary_for
from edp_mx.runtime import distributed

SIZES = (10_000, 100_000, 1_000_000)
BATCH = 64
BATCHES = 50  # that are timed together

SECONDS, MB, MS = "warm, s", "MB with an epoch", "ms for 1,000 utterances in batches"

Warm = Dict[int, Dict[str, List[float]]]  # by size and by what is measured, a value per start


def main() -> None:
    """Measure and print; or be one start."""
    parser = measuring.build_parser(__doc__, rounds=5)
    parser.add_argument(
        "--size", type=int, nargs="+", default=SIZES, metavar="N", help="two or more, in utterances"
    )
    parser.add_argument("--start-of", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    measuring.settle_threads()
    if options.start_of:
        print(json.dumps(start(options.start_of)))
        return
    sizes = sorted(options.size)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["EDP_MX_CACHE"] = folder
        warm = starts(sizes, options.rounds)
        batches = {family: measure_batches(family, sizes[-1], options) for family in options.model}
    for family, seconds in batches.items():
        title = f"{family}, batches of {BATCH}, {options.rounds} rounds"
        print(measuring.show_seconds(title, seconds, "batch"), flush=True)
    measuring.record(options, figures_of(warm, batches))


def figures_of(warm: Warm, batches: Dict[str, measuring.Seconds]) -> measuring.Figures:
    """Return what the bars are about: the largest corpus, alone and beside smaller ones."""
    smallest, before, largest = [*warm][0], [*warm][-2], [*warm][-1]

    def growth(what: str, base: int) -> List[float]:
        return [one / other for one, other in zip(warm[largest][what], warm[base][what])]

    figures = {
        f"seconds to start on {largest:,} cached utterances": warm[largest][SECONDS],
        f"anonymous memory of {largest:,} ÷ {before:,} utterances": growth(MB, before),
        f"time per utterance of {largest:,} ÷ {smallest:,}, batches": growth(MS, smallest),
    }
    for family, seconds in batches.items():
        what = f"{family.upper()}, batches ÷ steps in the same time"
        figures[what] = measuring.ratios(seconds, "step", "batch")
    return figures


def encode(size: int, family: str) -> EncodedCorpus:
    """Return the training part of a stand-in, with a vocabulary that does not grow with it."""
    public = {"vocabulary": VocabularyConfig("sample"), "labels": LabelsConfig("sample")}
    data = DataConfig(corpus="health", size=size, **public)
    config = ExperimentConfig(data=data, model=CLCConfig() if family == "clc" else BERTConfig())
    corpus = load_corpus(data)
    return encode_parts(config, corpus, vocabulary_for(config, corpus))["train"]


def start(size: int) -> Dict[str, float]:
    """Return seconds and MB of this process up to the first batch, and those of an epoch."""
    memory = _Memory()
    started = time.perf_counter()
    train = encode(size, "clc")
    train.batch(range(BATCH))
    seconds, started = time.perf_counter() - started, time.perf_counter()
    shard = Shard.deal(len(train), batch_size=BATCH, num_workers=1, rank=0, seed=0)
    for indices in shard.micro_batches(0):
        train.batch(indices)
    each = 1e6 * (time.perf_counter() - started) / len(train)
    return {SECONDS: seconds, MS: each, MB: memory.peak}


def starts(sizes: List[int], rounds: int) -> Warm:
    """Print what one cold start of each size and its warm starts took; return the latter."""
    cold = {}
    for size in sizes:
        measuring.progress(f"{size:,} utterances, cold")
        cold[size] = measuring.in_a_process(__file__, f"--start-of={size}")
    warm: Warm = {size: {what: [] for what in cold[size]} for size in sizes}
    for _ in range(rounds):
        for size in sizes:
            for what, value in measuring.in_a_process(__file__, f"--start-of={size}").items():
                warm[size][what].append(value)
    rows = [
        [f"{size:,}", f"{cold[size][SECONDS]:.1f}", *(show_quartiles(v, 2) for v in found.values())]
        for size, found in warm.items()
    ]
    table = render_table(("utterances", "cold, s", *warm[sizes[0]]), rows)
    title = "From the configuration to the first batch: median (quartiles)"
    print(f"\n{title}\n\n{table}", flush=True)
    return warm


def measure_batches(family: str, size: int, options: argparse.Namespace) -> measuring.Seconds:
    """Return the seconds of a batch and of a step in each round."""
    measuring.progress(f"{family}: batches and steps")
    train, generator = encode(size, family), np.random.default_rng(0)
    of_words = synthetic_batch(family)
    subject = Subject(paper_model(family), of_words, workers=distributed.start())

    def batch() -> float:
        started = time.perf_counter()
        for _ in range(BATCHES):
            train.batch(generator.choice(len(train), BATCH, replace=False))
        return (time.perf_counter() - started) / BATCHES

    return measuring.in_turn(
        {"batch": batch, "step": VARIANTS["sgd"](subject)}, rounds=options.rounds
    )


class _Memory:
    """The peak in MB beyond the start; the system's own peak has mapped pages of files in it."""

    def __init__(self) -> None:
        self._first, self.peak = self._now(), 0.0
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while True:
            self.peak = max(self.peak, self._now() - self._first)
            time.sleep(0.005)

    @staticmethod
    def _now() -> float:
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) / 1024 for line in file if line.startswith("RssAnon"))


if __name__ == "__main__":
    main()
