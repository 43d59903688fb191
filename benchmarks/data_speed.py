"""How fast a corpus is at hand and its batches are made, and the memory that both take.

Run: .venv/bin/python benchmarks/data_speed.py [--size N …] [--rounds 5] [--json FILE]

Starts: a process each, with a cache of its own, for stand-ins of 10⁴, 10⁵ and 10⁶ utterances with a
public vocabulary: from the configuration to the first batch. Once cold, when the corpus is made and
kept, and `--rounds` times warm, sizes in turn. Corpora below 50,000 utterances are not kept: their
starts are alike. Memory is what the process took beyond its imports: anonymous memory at its peak,
looked at every 5 ms, which is what it needs; and the pages of mapped files that it has looked at by
the end of an epoch's batches, which are clean, shared by all workers of a machine, and taken back
by the system when it needs them. An epoch is dealt and shuffled as training does it. Batches: of 64
utterances, in turn with SGD's steps on 64 utterances of up to 24 tokens at the paper's sizes; and a
batch and a step one after the other, in line and with the batches made ahead.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from functools import partial
from typing import Any, Callable, Dict, Iterator, List

import numpy as np
from rounds import Spread, in_turn, progress, ratio, spread
from steps import FAMILIES, VARIANTS, Variant, settle_threads
from subjects import Subject, synthetic_batch

from edp_mx.config import ExperimentConfig
from edp_mx.data.config import DataConfig
from edp_mx.data.corpus import load_corpus
from edp_mx.data.encoding import EncodedCorpus
from edp_mx.data.labels import LabelsConfig
from edp_mx.data.prefetch import prefetch
from edp_mx.data.sampling import Shard
from edp_mx.data.vocabulary import VocabularyConfig
from edp_mx.models.bert import BERTConfig
from edp_mx.models.clc import CLCConfig
from edp_mx.reports.table import render_table
from edp_mx.runs.build import encode_parts, vocabulary_for
from edp_mx.runtime import distributed
from edp_mx.runtime.distributed import Workers
from edp_mx.runtime.files import write_json

SIZES = (10_000, 100_000, 1_000_000)
BATCH, TOKENS, SHORTEST = 64, 24, 6
BATCHES = 50  # that are timed together
STEPS = 3
MEMORY = ("anonymous", "anonymous_epoch", "mapped_epoch")
_LOOK = 0.005  # seconds between two looks at the memory


def main() -> None:
    """Measures and prints."""
    options = _options()
    settle_threads()
    if options.start_of:
        print(json.dumps(start(options.start_of)))
        return
    with tempfile.TemporaryDirectory() as folder:
        os.environ["EDP_MX_CACHE"] = folder
        results: Dict[str, Any] = {"starts": starts(options)}
        print(page_of_starts(results["starts"]), flush=True)
        workers = distributed.start()
        results["batches"] = {f: batches(f, options, workers) for f in options.model or FAMILIES}
    print(page_of_batches(results["batches"]), flush=True)
    if options.json:
        write_json(options.json, results)


def encoded(size: int, family: str) -> EncodedCorpus:
    """The training part of a stand-in, with a vocabulary that does not grow with it."""
    data = DataConfig(
        corpus="health",
        size=size,
        vocabulary=VocabularyConfig(source="sample"),
        labels=LabelsConfig(source="sample"),
    )
    config = ExperimentConfig(data=data, model=CLCConfig() if family == "clc" else BERTConfig())
    corpus = load_corpus(data)
    return encode_parts(config, corpus, vocabulary_for(config, corpus))["train"]


def start(size: int) -> Dict[str, float]:
    """Seconds and MB of this process up to the first batch; seconds of an epoch's batches for a
    thousand utterances, and MB with them."""
    with _Memory() as memory:
        started = time.perf_counter()
        train = encoded(size, "clc")
        train.batch(range(BATCH))
        seconds, first = time.perf_counter() - started, memory.most()
        started = time.perf_counter()
        shard = Shard.deal(len(train), batch_size=BATCH, num_workers=1, rank=0, seed=0)
        for indices in shard.micro_batches(0):
            train.batch(indices)
        return {
            "seconds": seconds,
            "thousand": 1000 * (time.perf_counter() - started) / len(train),
            "anonymous": first["RssAnon"],
            "anonymous_epoch": memory.most()["RssAnon"],
            "mapped_epoch": memory.now()["RssFile"],
        }


def starts(options: argparse.Namespace) -> Dict[str, Dict[str, List[Dict[str, float]]]]:
    """What each start of each size took: once cold, then warm in turn."""
    found: Dict[str, Dict[str, List[Dict[str, float]]]] = {}
    for size in options.size or SIZES:
        progress(f"{size:,} utterances, cold")
        found[str(size)] = {"cold": [_in_a_process(size)], "warm": []}
    for _ in range(options.rounds):
        for size in found:
            found[size]["warm"].append(_in_a_process(int(size)))
    return found


def batches(family: str, options: argparse.Namespace, workers: Workers) -> Dict[str, List[float]]:
    """Seconds of a batch, of a step, and of a step with its batch, in each round."""
    progress(f"{family}: batches and steps")
    train = encoded(max(options.size or SIZES), family)
    batch = synthetic_batch(family, examples=BATCH, tokens=TOKENS, shortest=SHORTEST)
    variant = VARIANTS["sgd"](Subject(family, batch, has_crf=True, workers=workers))
    generator = np.random.default_rng(0)

    def drawn(count: int) -> Iterator[np.ndarray]:
        return (generator.choice(len(train), BATCH, replace=False) for _ in range(count))

    ways: Dict[str, Callable[[], float]] = {
        "batch": lambda: _timed(lambda: sum(1 for _ in map(train.batch, drawn(BATCHES)))) / BATCHES,
        "step": variant.step,
        "in line": partial(_steps, variant, lambda: map(train.batch, drawn(STEPS))),
        "ahead": partial(_steps, variant, lambda: prefetch(train.batch, drawn(STEPS))),
    }
    return in_turn(ways, rounds=options.rounds)


def _steps(variant: Variant, made: Callable[[], Iterator[object]]) -> float:
    """Seconds of some steps, each after its batch has been made."""
    return _timed(lambda: sum(variant.step() for _ in made())) / STEPS


def page_of_starts(found: Dict[str, Dict[str, List[Dict[str, float]]]]) -> str:
    """A line a size; ratios are those of the largest size before, round by round."""
    rows, before = [], None
    for size, kinds in found.items():
        warm = [one["seconds"] for one in kinds["warm"]]
        factor = ratio({"now": warm, "before": before}, "now", "before").show(1) if before else ""
        rows.append(
            [
                f"{int(size):,}",
                f"{kinds['cold'][0]['seconds']:.1f}",
                spread(warm).show(2),
                factor,
                f"{kinds['cold'][0]['anonymous']:.0f}",
                *(_spread_of(kinds["warm"], key).show(0) for key in MEMORY),
                spread([1000 * one["thousand"] for one in kinds["warm"]]).show(1),
            ]
        )
        before = warm
    columns = ("utterances", "cold, s", "warm, s", "÷ line above", "cold, MB", "warm, MB")
    table = render_table(
        (*columns, "with an epoch, MB", "mapped, MB", "batches of 1,000 utterances, ms"), rows
    )
    return (
        f"\nFrom the configuration to the first batch: median (quartiles)\n\n{table}\n\n"
        "MB are anonymous memory at its peak, beyond the imports: what the process needs. Mapped "
        "are the pages\nof the corpus' files that an epoch has looked at: clean, shared by all "
        "workers, and taken back by the\nsystem where memory is short."
    )


def page_of_batches(found: Dict[str, Dict[str, List[float]]]) -> str:
    """A line a model."""
    rows = [
        [
            family,
            f"{1000 * spread(seconds['batch']).median:.2f}",
            ratio(seconds, "step", "batch").show(0),
            ratio(seconds, "ahead", "in line").show(3),
        ]
        for family, seconds in found.items()
    ]
    columns = ("", "a batch, ms", "batches/s ÷ steps/s", "loop ahead ÷ in line")
    return f"\nBatches of {BATCH}: median (quartiles)\n\n" + render_table(columns, rows)


def _spread_of(values: List[Dict[str, float]], key: str) -> Spread:
    return spread([one[key] for one in values])


def _in_a_process(size: int) -> Dict[str, float]:
    command = [sys.executable, __file__, "--start-of", str(size)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def _timed(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


class _Memory:
    """What this process holds beyond what it held at first, in MB, looked at again and again.

    `RssAnon` is memory of its own; `RssFile` are mapped pages of files, which have a copy on the
    disk. The system keeps a peak only of their sum.
    """

    def __enter__(self) -> _Memory:
        self._first = self._most = self._held()
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()

    def now(self) -> Dict[str, float]:
        """What is held now."""
        return {kind: held - self._first[kind] for kind, held in self._held().items()}

    def most(self) -> Dict[str, float]:
        """The most of each that was seen so far."""
        return {kind: held - self._first[kind] for kind, held in self._most.items()}

    def _look(self) -> None:
        while not self._ends.wait(_LOOK):
            held = self._held()
            self._most = {kind: max(held[kind], most) for kind, most in self._most.items()}

    @staticmethod
    def _held() -> Dict[str, float]:
        with open("/proc/self/status") as file:
            lines = dict(line.split(":", 1) for line in file)
        return {kind: int(lines[kind].split()[0]) / 1024 for kind in ("RssAnon", "RssFile")}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", action="append", choices=FAMILIES, help="both if left out")
    parser.add_argument("--size", type=int, nargs="+", metavar="N", help="utterances")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", metavar="FILE", help="write all measurements there")
    parser.add_argument("--start-of", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
