"""What noise costs: scaled gradient plus noise, ours against MXNet's operators.

Run: .venv/bin/python benchmarks/noise_cost.py [--threads 1 2] [--rounds 15] [--json FILE]

Both take their turns in one process, another one for each number of threads, and the ratios are
taken round by round; only they mean much on a shared machine. Processor time says what is left of
them when others take the cores away. Ours are from AES-256 with a key of the operating system,
MXNet's from a generator with a constant seed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from typing import Any, Callable, Dict, List

import mxnet as mx
import numpy as np
from rounds import WARM_UP, in_turn, ratio, spread

from edp_mx.privacy.flat import host_view, sum_of_squares
from edp_mx.privacy.noise import NoiseStream
from edp_mx.reports.table import render_table
from edp_mx.runtime.files import write_json

SIZE = 14_230_752  # gradients of the smaller BERT
FACTOR, STDDEV = 0.9, 0.1
PAUSE = 0.05  # seconds, in which MXNet's threads stop to spin


def main() -> None:
    """Measures in a process for each number of threads, and prints."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--size", type=int, default=SIZE)
    parser.add_argument("--json", metavar="FILE", help="where to write all seconds")
    parser.add_argument("--is-inner", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.is_inner:
        print(json.dumps(measure(options.size, options.rounds)))
        return
    results = {}
    for threads in map(str, options.threads):
        command = [sys.executable, __file__, "--is-inner"]
        command += [f"--rounds={options.rounds}", f"--size={options.size}"]
        environment = {**os.environ, "OMP_NUM_THREADS": threads}
        inner = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE)
        results[threads] = json.loads(inner.stdout)
        print(page(threads, options, results[threads]), flush=True)
    if options.json:
        write_json(options.json, results)


def ways(size: int) -> Dict[str, Callable[[], object]]:
    """Ways to the same sum, and the other passes over a gradient; none makes a copy it could do
    without."""
    gradient = mx.nd.random.normal(shape=(size,))
    gradient.wait_to_read()
    array, stream = host_view(gradient), NoiseStream.from_operating_system()

    def mxnet() -> None:
        noise = mx.nd.random.normal(scale=STDDEV, shape=(size,))
        gradient[:] *= FACTOR
        gradient[:] += noise
        mx.nd.waitall()

    def mxnet_normal() -> None:
        mx.nd.random.normal(scale=STDDEV, shape=(size,))
        mx.nd.waitall()

    return {
        "ours": lambda: stream.scale_and_add(array, factor=FACTOR, stddev=STDDEV),
        "MXNet": mxnet,
        "MXNet, normal alone": mxnet_normal,
        "scale alone": lambda: np.multiply(array, np.float32(FACTOR), out=array),
        "norm": lambda: sum_of_squares(array),
    }


def measure(size: int, rounds: int) -> Dict[str, Any]:
    """Seconds of each way, on the wall and of the processor, by round."""
    processor: Dict[str, List[float]] = {}

    def timed(name: str, way: Callable[[], object]) -> Callable[[], float]:
        def call() -> float:
            wall, own = time.perf_counter(), time.process_time()
            way()
            processor.setdefault(name, []).append(time.process_time() - own)
            return time.perf_counter() - wall

        return call

    calls = {name: timed(name, way) for name, way in ways(size).items()}
    seconds = in_turn(calls, rounds=rounds, pause=PAUSE)
    processor = {name: values[WARM_UP:] for name, values in processor.items()}
    return {"seconds": seconds, "processor": processor}


def page(threads: str, options: argparse.Namespace, result: Dict[str, Any]) -> str:
    """The table of one number of threads: milliseconds and, in ours, ratios with quartiles."""
    both = (result["seconds"], result["processor"])
    rows = [
        [
            name,
            *(spread([1e3 * s for s in seconds[name]]).show(1) for seconds in both),
            *(ratio(seconds, name, "ours").show(2) for seconds in both),
        ]
        for name in result["seconds"]
    ]
    title = (
        f"\n{options.size:,} floats, {threads} thread(s), {options.rounds} rounds: "
        "median (quartiles)\n"
    )
    columns = ("", "ms", "processor ms", "÷ ours", "processor ÷ ours")
    return f"{title}\n{render_table(columns, rows)}"


if __name__ == "__main__":
    main()
