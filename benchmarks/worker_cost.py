"""What N workers on this machine get done against one: utterances per second with eDP-SGD.

Run: .venv/bin/python benchmarks/worker_cost.py [--workers 2 8] [--rounds 5] [--json FILE]

All jobs are started first and take turns of a few steps; those that have no turn stand still.
"""

import argparse
import os
import sys
from contextlib import ExitStack
from typing import Any, Dict, List

import measuring
from jobs import Job, serve

from edp_mx.runtime.processes import launcher

WARM_UP = 1  # turns that are not counted; each is several steps


def main() -> None:
    """Start the jobs, measure and print; or be a worker of one."""
    parser = measuring.build_parser(__doc__, rounds=5)
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 8], help="besides one")
    parser.add_argument("--each", type=int, default=32, help="examples of every worker")
    parser.add_argument("--steps", type=int, default=2, help="in a turn")
    parser.add_argument("--serve", metavar="ADDRESS", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        work(options)
        return
    numbers = sorted({1, *options.workers})
    figures: measuring.Figures = {}
    with ExitStack() as stack:
        jobs = {}
        for number in numbers:
            measuring.progress(f"starting {number} worker(s)")
            jobs[number] = start(number, options)
            stack.callback(jobs[number].close)
        for family in options.model:
            rates = measure(family, options, jobs)
            title = (
                f"{family}, eDP-SGD, {options.each} examples per worker, {options.rounds} rounds "
                f"of {options.steps} step(s)"
            )
            print(measuring.show_rates(title, "workers", rates, "1", digits=1), flush=True)
            for name in list(rates)[1:]:
                figures[f"{family.upper()}, {name} workers ÷ one"] = measuring.ratios(
                    rates, name, "1"
                )
    measuring.record(options, figures)


def start(number: int, options: argparse.Namespace) -> Job:
    """Start a job of so many workers by the program that the launcher calls."""
    threads = max(1, len(os.sched_getaffinity(0)) // number)  # as launch/environment.sh
    program = [sys.executable, __file__, "--each", str(options.each), "--serve"]
    return Job(
        [*launcher(number), *program],
        size=number,
        environment={"OMP_NUM_THREADS": str(threads)},
    )


def measure(family: str, options: argparse.Namespace, jobs: Dict[int, Job]) -> measuring.Seconds:
    """Return the utterances per second of each job, by round."""
    rates: Dict[str, List[float]] = {str(number): [] for number in jobs}
    for turn in range(WARM_UP + options.rounds):
        measuring.progress(f"{family}: round {turn + 1} of {WARM_UP + options.rounds}")
        for number, job in jobs.items():
            seconds = max(job.turn((family, options.steps)))
            if turn >= WARM_UP:
                rates[str(number)].append(number * options.each / seconds)
    return rates


def work(options: argparse.Namespace) -> None:
    """Build both models and answer each order with the seconds of a step."""
    from steps import VARIANTS
    from subjects import Subject, paper_model, synthetic_batch

    from edp_mx.runtime import distributed

    workers = distributed.start()
    steps = {}
    for family in measuring.FAMILIES:
        batch = synthetic_batch(family, examples=options.each, seed=workers.rank)
        steps[family] = VARIANTS["edp_sgd"](Subject(paper_model(family), batch, workers=workers))

    def take(order: Any) -> float:
        family, times = order
        workers.gather(workers.rank)  # all are ready
        steps[family]()  # not counted: in training one step follows another and no pause
        return sum(steps[family]() for _ in range(times)) / times

    serve(options.serve, take)


if __name__ == "__main__":
    main()
