"""What N workers on this machine get done against one: utterances a second, and the all-reduce.

Run: .venv/bin/python benchmarks/worker_cost.py [--workers 1 2 8] [--rounds 5] [--json FILE]

What a user chooses is the number of workers, for a machine and a batch that are given: all jobs
train on the same batch, of which each worker takes its share. And once more with as many examples
for each worker as one alone has, as on several machines. All jobs are started first and take turns
of a few steps; who has no turn stands still. A worker has as many threads as the launcher gives it:
its share of the cores, at least one.
"""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Dict, List

from rounds import progress, ratio, spread
from sides import Side, end_sides_on_sigterm

from edp_mx.reports.table import render_table
from edp_mx.runtime.files import write_json

FAMILIES = ("clc", "bert")
SHARED, EACH, ALL_REDUCE = "workers, one batch", "workers, a batch each", "all-reduce"
WARM_UP = 1  # turns that are not counted; each is several steps


def main() -> None:
    """Starts the jobs, measures and prints."""
    options = _options()
    end_sides_on_sigterm()
    numbers = sorted({1, *options.workers})
    with ExitStack() as stack:
        jobs = {}
        for number in numbers:
            progress(f"starting {number} worker(s)")
            jobs[str(number)] = start(number)
            stack.callback(jobs[str(number)].close)
        results = {family: measure(family, options, jobs) for family in options.model or FAMILIES}
    for family, result in results.items():
        print(page(family, result), flush=True)
    if options.json:
        write_json(options.json, results)


def start(number: int) -> Side:
    """A job of so many workers, by the program that the launcher calls."""
    threads = max(1, len(os.sched_getaffinity(0)) // number)  # as launch/environment.sh
    launcher = str(Path(sys.executable).with_name("horovodrun"))
    program = [sys.executable, str(Path(__file__).with_name("worker_cost_side.py"))]
    return Side(
        [launcher, "-np", str(number), "--gloo", *program],
        size=number,
        # The second, because a job that stands still answers nobody.
        environment={"OMP_NUM_THREADS": str(threads), "HOROVOD_GLOO_TIMEOUT_SECONDS": "600"},
    )


def measure(family: str, options: argparse.Namespace, jobs: Dict[str, Side]) -> Dict[str, Any]:
    """Seconds of a step and of an all-reduce alone, of each job, by round."""
    examples = {
        SHARED: dict.fromkeys(jobs, options.batch),
        EACH: {name: options.each * int(name) for name in jobs},
    }
    seconds: Dict[str, Dict[str, List[float]]] = {
        part: {name: [] for name in jobs} for part in (*examples, ALL_REDUCE)
    }
    for number in range(WARM_UP + options.rounds):
        progress(f"{family}: round {number + 1} of {WARM_UP + options.rounds}")
        for part, measured in seconds.items():
            for name, job in jobs.items():
                order = {"family": family, "times": options.steps}
                if part != ALL_REDUCE:
                    order["examples"] = examples[part][name]
                answers = job.turn(order)
                if number >= WARM_UP:
                    measured[name].append(max(answers))
    return {"examples": examples, "seconds": seconds, "steps": options.steps}


def throughput(result: Dict[str, Any], part: str) -> Dict[str, List[float]]:
    """Utterances a second of each job, by round."""
    return {
        name: [result["examples"][part][name] / value for value in values]
        for name, values in result["seconds"][part].items()
    }


def page(family: str, result: Dict[str, Any]) -> str:
    """The tables of a family."""
    seconds = result["seconds"]
    rounds = len(seconds[ALL_REDUCE]["1"])
    lines = [f"\n{family}, eDP-SGD, {rounds} rounds of {result['steps']} steps: median (quartiles)"]
    for part, examples in result["examples"].items():
        rates = throughput(result, part)
        rows = []
        for name, values in rates.items():
            reduced = {"all-reduce": seconds[ALL_REDUCE][name], "step": seconds[part][name]}
            rows.append(
                [
                    name,
                    str(examples[name] // int(name)),
                    spread(values).show(1),
                    ratio(rates, name, "1").show(2),
                    "" if name == "1" else ratio(reduced, "all-reduce", "step").show(2),
                ]
            )
        columns = (part, "examples", "utterances/s", "÷ one worker", "all-reduce ÷ step")
        lines.append(f"\n{render_table(columns, rows)}")
    lines.append(
        "\nA batch that is divided has no bar: every worker clips, noises and updates the whole "
        "gradient,\nhowever few examples it is left with."
    )
    return "\n".join(lines)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 8])
    parser.add_argument("--model", action="append", choices=FAMILIES, help="both if left out")
    parser.add_argument("--batch", type=int, default=64, help="examples of all workers")
    parser.add_argument("--each", type=int, default=32, help="examples of every worker, besides")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=2, help="in a turn")
    parser.add_argument("--json", metavar="FILE", help="where to write all seconds")
    return parser.parse_args()


if __name__ == "__main__":
    main()
