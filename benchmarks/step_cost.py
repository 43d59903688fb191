r"""What privacy costs a training step: SGD, eDP-SGD and DP-SGD beside each other.

Run: .venv/bin/python benchmarks/step_cost.py [--model bert] [--rounds 15] [--json FILE]
     .venv/bin/python benchmarks/step_cost.py --no-peak --variants edp_sgd edp_sgd_hardened --sgemm
     .venv/bin/python -m edp_mx.runtime.launcher --workers 2 \
       .venv/bin/python benchmarks/step_cost.py --no-peak
     .venv/bin/python benchmarks/step_cost.py --parts

`--sgemm` adds a large product by NumPy's and by SciPy's library, and the FLOP/s of SGD's products
beside those of the faster. `crf` is the CRF's loss and gradient alone. `--parts` adds DP-SGD by
ghost clipping where a part of a BERT is trained; `stored` reads the outputs of the frozen layers,
as training does. Peak memory is that of a process of its own.
"""

import argparse
import os
import resource
import time
from functools import partial
from statistics import median
from typing import List

import measuring
import numpy as np
from scipy.linalg.blas import sgemm as sgemm_of_scipy
from steps import PARTS, SGEMM_FLOPS, USUAL, VARIANTS, Step, sgemm
from subjects import (
    EXAMPLES,
    TOKENS,
    Subject,
    above_frozen,
    paper_model,
    product_flops,
    synthetic_batch,
)

from edp_mx.reports.table import render_table
from edp_mx.runtime import distributed
from edp_mx.runtime.distributed import Workers

PEAK_STEPS = 3
LIKE_OTHERS = ("edp_sgd_hardened", "crf")  # whose peaks would say nothing of their own
PRODUCTS = {"numpy's sgemm": np.matmul, "scipy's sgemm": partial(sgemm_of_scipy, 1.0)}


def main() -> None:
    """Measure, and print on the first worker."""
    options = _options()
    measuring.settle_threads()
    if options.processor_time:
        measuring.clock = time.process_time
    workers = distributed.start()
    if options.peak_of:
        step = _step(options.peak_of, options.model[0], options, workers)
        for _ in range(PEAK_STEPS):
            step()
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        return
    has_peaks = options.peak and workers.size == 1
    # Before all else: a process inherits its parent's peak, which is still small.
    size = [f"--batch={options.batch}", f"--tokens={options.tokens}"]
    peaks = {
        (family, name): measuring.in_a_process(
            __file__, f"--model={family}", *size, "--peak-of", name
        )
        for family in options.model
        for name in options.variants
        if has_peaks and name not in LIKE_OTHERS
    }
    figures: measuring.Figures = {}
    for family in options.model:
        steps = {name: _step(name, family, options, workers) for name in options.variants}
        steps.update({name: sgemm(way) for name, way in PRODUCTS.items() if options.sgemm})
        seconds = measuring.in_turn(steps, rounds=options.rounds)
        if workers.is_first:
            threads = os.environ["OMP_NUM_THREADS"]
            size = f"B = {options.batch}, T = {options.tokens}, {threads} thread(s) per worker"
            size += ", processor time" if options.processor_time else ""
            title = f"{family}: {size}, {options.rounds} rounds"
            print(measuring.show_seconds(title, seconds, "sgd"), flush=True)
        if {"edp_sgd", "edp_sgd_hardened"} <= set(seconds):
            figures[f"{family.upper()}, hardened noise ÷ plain"] = measuring.ratios(
                seconds, "edp_sgd_hardened", "edp_sgd"
            )
        if options.sgemm:
            what = f"{family.upper()}, FLOP/s of sgd ÷ sgemm's"
            figures[what] = _efficiency(seconds, family, options)
        rows = []
        for name in options.variants:
            what = f"{family.upper()}, {name} ÷ sgd"
            figures[what] = measuring.ratios(seconds, name, "sgd")
            if (family, name) in peaks:
                ours, plain = peaks[family, name], peaks[family, "sgd"]
                figures[f"{what}, peak memory"] = [ours / plain]
                rows.append([name, f"{ours:.0f}", f"{ours / plain:.2f}"])
        if has_peaks:
            print(f"\n{render_table(('step', 'peak memory, MB', '÷ sgd'), rows)}", flush=True)
    if workers.is_first:
        measuring.record(options, figures)


def _efficiency(
    seconds: measuring.Seconds, family: str, options: argparse.Namespace
) -> List[float]:
    """Return the FLOP/s of SGD's products ÷ those of the faster sgemm, by round."""
    batch = synthetic_batch(family, examples=options.batch, tokens=options.tokens)
    flops = product_flops(paper_model(family), batch) / SGEMM_FLOPS
    best = min(PRODUCTS, key=lambda name: median(seconds[name]))
    return [flops * each for each in measuring.ratios(seconds, best, "sgd")]


def _step(name: str, family: str, options: argparse.Namespace, workers: Workers) -> Step:
    """A variant on a model and batch of its own; the batch differs from worker to worker."""
    size = {"examples": options.batch, "tokens": options.tokens}
    batch = synthetic_batch(family, **size, seed=workers.rank)
    model = paper_model(family, **PARTS.get(name, {}))
    if name.endswith("_stored"):
        model, batch = above_frozen(model, batch)
    return VARIANTS[name](Subject(model, batch, workers=workers))


def _options() -> argparse.Namespace:
    parser = measuring.build_parser(__doc__, rounds=15)
    parser.add_argument("--batch", type=int, default=EXAMPLES, help="examples per worker")
    parser.add_argument("--tokens", type=int, default=TOKENS, help="of the longest utterance")
    parser.add_argument("--variants", nargs="+", choices=USUAL, default=USUAL, help="besides sgd")
    parser.add_argument("--sgemm", action="store_true", help="beside a large product")
    parser.add_argument("--parts", action="store_true", help="parts of a BERT, by dp_sgd_ghost")
    parser.add_argument(
        "--processor-time", action="store_true", help="not of the clock: for one thread beside work"
    )
    parser.add_argument("--no-peak", dest="peak", action="store_false", help="skip peak memory")
    parser.add_argument("--peak-of", choices=VARIANTS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.parts:
        options.model, options.variants = ["bert"], ("dp_sgd_ghost", *PARTS)
    options.variants = [name for name in VARIANTS if name in {*options.variants, "sgd"}]
    return options


if __name__ == "__main__":
    main()
