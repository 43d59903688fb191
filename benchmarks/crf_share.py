"""What part of a training step the CRF takes: its loss and gradient, at the paper's size.

Run: .venv/bin/python benchmarks/crf_share.py [--model clc] [--rounds 11] [--json FILE]

A whole SGD step and the CRF alone take turns in one process; the ratio is taken round by round, and
only it means much on a shared machine.
"""

from __future__ import annotations

import argparse
import time
from typing import Callable, Dict, List

import mxnet as mx
from mxnet import autograd
from rounds import in_turn, ratio, spread
from steps import VARIANTS, settle_threads
from subjects import FAMILIES, SLOTS, Subject, synthetic_batch

from edp_mx.reports.table import render_table
from edp_mx.runtime import distributed
from edp_mx.runtime.distributed import Workers
from edp_mx.runtime.files import write_json

EXAMPLES, TOKENS, SHORTEST = 64, 24, 6


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", action="append", choices=FAMILIES, help="both if left out")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--json", metavar="FILE", help="where to write all seconds")
    options = parser.parse_args()
    settle_threads()
    workers = distributed.start()
    results = {}
    for family in options.model or FAMILIES:
        results[family] = in_turn(parts(family, workers), rounds=options.rounds)
    print(page(results), flush=True)
    if options.json:
        write_json(options.json, results)


def parts(family: str, workers: Workers) -> Dict[str, Callable[[], float]]:
    """A whole step, and the CRF's share of it alone."""
    batch = synthetic_batch(family, examples=EXAMPLES, tokens=TOKENS, shortest=SHORTEST)
    subject = Subject(family, batch, has_crf=True, workers=workers)
    emissions = mx.nd.random.normal(shape=(EXAMPLES, TOKENS, SLOTS))  # (N, T, K)
    emissions.attach_grad()

    def crf() -> float:
        started = time.perf_counter()
        with autograd.record():
            loss = subject.model.slot.crf(emissions, batch.slots, batch.lengths).sum()
        loss.backward()
        mx.nd.waitall()
        return time.perf_counter() - started

    return {"step": VARIANTS["sgd"](subject).step, "crf": crf}


def page(results: Dict[str, Dict[str, List[float]]]) -> str:
    """The table of all families."""
    rows = [
        [
            family,
            *(spread([1e3 * s for s in seconds[part]]).show(1) for part in ("step", "crf")),
            ratio(seconds, "crf", "step").show(3),
        ]
        for family, seconds in results.items()
    ]
    return "\nmedian (quartiles)\n\n" + render_table(("", "step ms", "CRF ms", "CRF ÷ step"), rows)


if __name__ == "__main__":
    main()
