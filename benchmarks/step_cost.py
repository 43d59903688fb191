"""What privacy costs a training step: SGD, eDP-SGD and DP-SGD beside each other, with the parts.

Run: .venv/bin/python benchmarks/step_cost.py [--model bert] [--rounds 15] [--json FILE]
     horovodrun --gloo -np 2 .venv/bin/python benchmarks/step_cost.py

The variants take their steps in turn, in one process, and the ratios are taken round by round; only
they mean much on a shared machine. Models at the paper's size, with CRF, heads and dropout. Peak
memory is that of a process of its own, libraries included (with one worker only).
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import time
from typing import Any, Callable, Dict, List

import mxnet as mx
from mxnet import autograd
from rounds import in_turn, ratio, spread
from steps import VARIANTS, Variant, settle_threads
from subjects import FAMILIES, Subject, synthetic_batch

from edp_mx.privacy.mechanism import Mechanism
from edp_mx.reports.table import render_table
from edp_mx.runtime import distributed
from edp_mx.runtime.distributed import Workers, allreduce_
from edp_mx.runtime.files import write_json

SHORTEST = 6  # tokens of an utterance
PEAK_STEPS = 3


def main() -> None:
    """Measures and prints, on the first worker."""
    options = _options()
    settle_threads()
    workers = distributed.start()
    if options.peak_of:
        variant = VARIANTS[options.peak_of](new_subject(options.model[0], options, workers))
        for _ in range(PEAK_STEPS):
            variant.step()
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        return
    families = options.model or FAMILIES
    results: Dict[str, Dict[str, Any]] = {family: {} for family in families}
    if options.peak and workers.size == 1:
        # Before all else: a process inherits its parent's peak, which is still small.
        results = {family: {"peak_mb": peaks(family, options)} for family in families}
    for family in families:
        results[family].update(measure(family, options, workers))
        if workers.is_first:
            print(page(family, options, results[family], workers), flush=True)
    if options.json and workers.is_first:
        write_json(options.json, results)


def new_subject(family: str, options: argparse.Namespace, workers: Workers) -> Subject:
    """A model to train and its batch, another one for each worker."""
    batch = synthetic_batch(
        family,
        examples=options.batch,
        tokens=options.tokens,
        shortest=min(SHORTEST, options.tokens),
        seed=workers.rank,
    )
    return Subject(family, batch, has_crf=True, workers=workers)


def measure(family: str, options: argparse.Namespace, workers: Workers) -> Dict[str, Any]:
    """Seconds of each variant's step, and of the parts of eDP-SGD's."""
    variants = {
        name: VARIANTS[name](new_subject(family, options, workers)) for name in options.variants
    }
    steps = {name: variant.step for name, variant in variants.items()}
    seconds = in_turn(steps, rounds=options.rounds)
    parts = {name: timed(part) for name, part in parts_of(variants["edp_sgd"]).items()}
    return {
        "seconds": seconds,
        "parts": in_turn(parts, rounds=options.rounds, is_rotated=False),
    }


def peaks(family: str, options: argparse.Namespace) -> Dict[str, float]:
    """MB that each variant takes in a process of its own."""
    command = [sys.executable, __file__, f"--model={family}", f"--batch={options.batch}"]
    command += [f"--tokens={options.tokens}", "--peak-of"]
    return {
        name: float(subprocess.run([*command, name], check=True, stdout=subprocess.PIPE).stdout)
        for name in options.variants
    }


def parts_of(variant: Variant) -> Dict[str, Callable[[], object]]:
    """The parts of an eDP-SGD step, to be called in this order.

    Clipping and noise are one pass over the gradients, which is called without noise first.
    """
    subject, mechanism = variant.subject, variant.mechanism
    assert isinstance(mechanism, Mechanism) and mechanism.plan.release is not None
    flat, noise = subject.flat, mechanism._noise
    stddev = mechanism.plan.release.worker_noise_stddev(mechanism.plan.noise_multiplier)[0]
    loss: List[mx.nd.NDArray] = []

    def forward() -> None:
        with autograd.record():
            loss[:] = [subject.mean_loss()]

    def all_reduce() -> None:
        if subject.workers.size > 1:  # one worker alone has nothing to do, in training too
            allreduce_(flat.array, average=True, name="step_cost.gradients")

    return {
        "forward": forward,
        "backward": lambda: loss[0].backward(),
        "norm": lambda: flat.squared_norms(flat.gradients()),
        "clip": lambda: noise.scale_and_add(flat.gradients(), factor=0.5, stddev=0.0),
        "clip and noise": lambda: noise.scale_and_add(flat.gradients(), factor=0.5, stddev=stddev),
        "all-reduce": all_reduce,
        "update": lambda: variant.trainer._update(),  # what `step` does after the all-reduce
    }


def timed(part: Callable[[], object]) -> Callable[[], float]:
    """The same, returning the seconds until all is done."""

    def run() -> float:
        started = time.perf_counter()
        part()
        mx.nd.waitall()
        return time.perf_counter() - started

    return run


def page(family: str, options: argparse.Namespace, result: Dict[str, Any], workers: Workers) -> str:
    """Both tables."""
    seconds, peak = result["seconds"], result.get("peak_mb")
    steps = [
        [
            name,
            spread([1e3 * value for value in values]).show(0),
            ratio(seconds, name, "sgd").show(3),
            *([f"{peak[name]:.0f}", f"{peak[name] / peak['sgd']:.2f}"] if peak else []),
        ]
        for name, values in seconds.items()
    ]
    title = (
        f"\n{family}: B = {options.batch}, T = {options.tokens}, {workers.size} worker(s) of "
        f"{os.environ['OMP_NUM_THREADS']} thread(s), {options.rounds} rounds: median (quartiles)\n"
    )
    columns = ("step", "ms", "÷ sgd", *(("peak MB", "÷ sgd's") if peak else ()))
    shares = render_table(("part of edp_sgd", "ms", "share"), _shares(result["parts"]))
    return "\n".join([title, render_table(columns, steps), "", shares])


def _shares(parts: Dict[str, List[float]]) -> List[List[str]]:
    """Rows of the second table; noise is what it adds to the pass that clips."""
    medians = {name: statistics.median(values) for name, values in parts.items()}
    both = medians.pop("clip and noise")
    rows = {}
    for name, value in medians.items():
        rows[name] = value
        if name == "clip":
            rows["noise"] = both - value
    total = sum(rows.values())
    return [[name, f"{1e3 * value:.1f}", f"{value / total:.1%}"] for name, value in rows.items()]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", action="append", choices=FAMILIES, help="both if left out")
    parser.add_argument("--batch", type=int, default=64, help="examples of one worker")
    parser.add_argument("--tokens", type=int, default=24, help="of the longest utterance")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument(
        "--variants",
        nargs="+",
        choices=VARIANTS,
        default=list(VARIANTS),
        help="besides sgd and edp_sgd",
    )
    parser.add_argument("--no-peak", dest="peak", action="store_false", help="leaves memory out")
    parser.add_argument("--json", metavar="FILE", help="where to write all seconds")
    parser.add_argument("--peak-of", choices=sorted(VARIANTS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.variants = [name for name in VARIANTS if name in {*options.variants, "sgd", "edp_sgd"}]
    return options


if __name__ == "__main__":
    main()
