r"""What privacy costs a training step: SGD, eDP-SGD and DP-SGD beside each other.

Run: .venv/bin/python benchmarks/step_cost.py [--model bert] [--rounds 15] [--json FILE]
     .venv/bin/python benchmarks/step_cost.py --no-peak --variants edp_sgd edp_sgd_hardened --sgemm
     .venv/bin/python -m edp_mx.runtime.launcher --workers 2 \
       .venv/bin/python benchmarks/step_cost.py --no-peak
     .venv/bin/python benchmarks/step_cost.py --model bert --parts
     .venv/bin/python benchmarks/step_cost.py --model gpt2 --parts --pieces 50257 --fits 4 \
       [--sizes num_layers=12 num_heads=12 hidden_size=768 intermediate_size=3072]

`--sgemm` adds a large product by NumPy's and by SciPy's library, and the FLOP/s of SGD's products
beside those of the faster. `crf` is the CRF's loss and gradient alone, `privacy` the norm and the
noise of eDP-SGD. `--parts` is DP-SGD by ghost clipping of a transformer, as a whole and where a
part of it is trained; `stored` reads the outputs of the frozen layers, as training does. Peak
memory is that of a process of its own. `--fits` looks for the largest batch by a line through the
peaks at the batch and at twice as many; `--verify` measures its peak too.
"""

import argparse
import os
import resource
import time
from functools import partial
from statistics import median
from typing import Dict, List

import measuring
import numpy as np
from scipy.linalg.blas import sgemm as sgemm_of_scipy
from steps import PARTS, ROUNDED, SGEMM_FLOPS, USUAL, VARIANTS, sgemm, variants_of
from subjects import (
    EXAMPLES,
    PIECES,
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
LIKE_OTHERS = ("edp_sgd_hardened", "crf", "privacy")  # whose peaks would say nothing of their own
PRODUCTS = {"numpy's sgemm": np.matmul, "scipy's sgemm": partial(sgemm_of_scipy, 1.0)}


def main() -> None:
    """Measure, and print on the first worker."""
    options = _options()
    measuring.settle_threads()
    if options.processor_time:
        measuring.clock = time.process_time
    workers = distributed.start()
    if options.peak_of:
        step = VARIANTS[options.peak_of](
            _subject(options.peak_of, options.model[0], options, workers)
        )
        for _ in range(PEAK_STEPS):
            step()
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        return
    has_peaks = options.peak and workers.size == 1
    # Before all else: a process inherits its parent's peak, which is still small.
    peaks = {
        (family, name): _peaks(family, name, options)
        for family in options.model
        for name in variants_of(family, options.variants)
        if has_peaks and name not in LIKE_OTHERS
    }
    figures: measuring.Figures = {}
    for family in options.model:
        names = variants_of(family, options.variants)
        subjects = {name: _subject(name, family, options, workers) for name in names}
        steps = {name: VARIANTS[name](subject) for name, subject in subjects.items()}
        steps.update({name: sgemm(way) for name, way in PRODUCTS.items() if options.sgemm})
        seconds = measuring.in_turn(steps, rounds=options.rounds, pause=measuring.PAUSE)
        if workers.is_first:
            print(measuring.show_seconds(_title(family, options), seconds, "sgd"), flush=True)
        if {"edp_sgd", "edp_sgd_hardened"} <= set(seconds):
            figures[f"{family.upper()}, hardened noise ÷ plain"] = measuring.ratios(
                seconds, "edp_sgd_hardened", "edp_sgd"
            )
        if options.sgemm:
            what = f"{family.upper()}, FLOP/s of sgd ÷ sgemm's"
            best = min(PRODUCTS, key=lambda name: median(seconds[name]))
            flops = product_flops(subjects["sgd"].model, subjects["sgd"].batch) / SGEMM_FLOPS
            figures[what] = [flops * each for each in measuring.ratios(seconds, best, "sgd")]
        for name in names:
            what = f"{family.upper()}, {name} ÷ sgd"
            figures[what] = measuring.ratios(seconds, name, "sgd")
            if (family, name) in peaks:
                ratio = peaks[family, name][0] / peaks[family, "sgd"][0]
                figures[f"{what}, peak memory"] = [ratio]
        if has_peaks:
            own = {name: peaks[family, name] for name in names if (family, name) in peaks}
            print(_show_peaks(own, options), flush=True)
    if workers.is_first:
        measuring.record(options, figures)


def _title(family: str, options: argparse.Namespace) -> str:
    pieces = f", V = {options.pieces or PIECES[family]}" if family in PIECES else ""
    threads = f"{os.environ['OMP_NUM_THREADS']} thread(s) per worker"
    title = f"{family}: B = {options.batch}, T = {options.tokens}{pieces}, {threads}"
    title += ", processor time" if options.processor_time else ""
    return f"{title}, {options.rounds} rounds"


def _show_peaks(peaks: Dict[str, List[float]], options: argparse.Namespace) -> str:
    columns = ["step", "peak memory, MB", "÷ sgd"]
    if options.fits:
        columns += [f"largest batch in {options.fits:g} GB"] + ["its peak, MB"] * options.verify
    rows = [
        [name, f"{peak:.0f}", f"{peak / peaks['sgd'][0]:.2f}", *(f"{each:.0f}" for each in more)]
        for name, (peak, *more) in peaks.items()
    ]
    return f"\n{render_table(columns, rows)}"


def _peaks(family: str, name: str, options: argparse.Namespace) -> List[float]:
    """Return the peak in MB, and if asked for the largest batch that fits, and its peak."""

    def peak(batch: int) -> float:
        given = [f"--{key}={getattr(options, key)}" for key in ("tokens", "pieces")]
        given += [f"--batch={batch}", "--model", family, "--peak-of", name]
        return measuring.in_a_process(__file__, *given, "--sizes", *options.sizes)

    first = peak(options.batch)
    if not options.fits:
        return [first]
    each = (peak(2 * options.batch) - first) / options.batch  # MB
    largest = options.batch + int((1024 * options.fits - first) / each)
    found = [first, max(largest, 0)]
    return [*found, peak(largest)] if options.verify and largest > 0 else found


def _subject(name: str, family: str, options: argparse.Namespace, workers: Workers) -> Subject:
    """A variant's own model and batch, which differs from worker to worker."""
    size = {"examples": options.batch, "tokens": options.tokens, "num_pieces": options.pieces}
    batch = synthetic_batch(family, **size, seed=workers.rank)
    sizes = {key: int(value) for key, _, value in (one.partition("=") for one in options.sizes)}
    model = paper_model(family, num_pieces=options.pieces, **{**PARTS.get(name, {}), **sizes})
    if name.endswith("_stored"):
        model, batch = above_frozen(model, batch)
    return Subject(model, batch, workers=workers)


def _options() -> argparse.Namespace:
    parser = measuring.build_parser(__doc__, rounds=15, more_models=["gpt2"])
    parser.add_argument("--batch", type=int, default=EXAMPLES, help="examples per worker")
    parser.add_argument("--tokens", type=int, default=TOKENS, help="of the longest utterance")
    parser.add_argument("--variants", nargs="+", choices=(*USUAL, ROUNDED), default=USUAL,
        help="besides sgd")  # fmt: skip
    parser.add_argument("--sgemm", action="store_true", help="beside a large product")
    parser.add_argument("--parts", action="store_true", help="of a transformer, by dp_sgd_ghost")
    parser.add_argument("--pieces", type=int, default=0, help="V, of a BERT or GPT-2")
    parser.add_argument("--sizes", nargs="*", default=[], metavar="KEY=N", help="of its model")
    parser.add_argument("--fits", type=float, metavar="GB", help="find the largest batch that fits")
    parser.add_argument("--verify", action="store_true", help="measure the peak of that batch")
    parser.add_argument(
        "--processor-time", action="store_true", help="not of the clock: for one thread beside work"
    )
    parser.add_argument("--no-peak", dest="peak", action="store_false", help="skip peak memory")
    parser.add_argument("--peak-of", choices=VARIANTS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.parts:
        options.variants = ("dp_sgd_ghost", *PARTS)
        options.model = [family for family in options.model if family != "clc"]
    if options.sgemm and "gpt2" in options.model:
        parser.error("--sgemm counts the products of a CLC and of a BERT; leave out gpt2")
    return options


if __name__ == "__main__":
    main()
