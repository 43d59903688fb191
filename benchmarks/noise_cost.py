"""What noise costs: a gradient scaled and noised by us, and by MXNet's operators.

Run: .venv/bin/python benchmarks/noise_cost.py [--threads 1 2] [--rounds 15] [--json FILE]

Both take turns in one process, another one for each number of threads, and the ratios are taken
round by round; only the ratios mean much on a shared machine. Our noise comes from AES-256 with a
key of the operating system, MXNet's from a generator with a constant seed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys

import mxnet as mx
from measuring import Figures, Seconds, build_parser, in_turn, ratios, record, show_seconds, timed

from edp_mx.privacy.flat import host_view
from edp_mx.privacy.noise import NoiseStream

SIZE = 14_230_752  # gradients of the smaller BERT
FACTOR, STDDEV = 0.9, 0.1
PAUSE = 0.05  # seconds, in which MXNet's threads stop spinning


def main() -> None:
    """Measure in one process for each number of threads, and print."""
    parser = build_parser(__doc__, rounds=15, has_models=False)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="default: 1 2")
    parser.add_argument("--size", type=int, default=SIZE, help="floats of the gradient")
    parser.add_argument("--is-inner", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.is_inner:
        print(json.dumps(measure(options.size, options.rounds)))
        return
    figures: Figures = {}
    for threads in options.threads:
        command = [sys.executable, __file__, "--is-inner"]
        command += [f"--rounds={options.rounds}", f"--size={options.size}"]
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
        inner = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE)
        seconds = json.loads(inner.stdout)
        title = f"{options.size:,} floats, {threads} thread(s), {options.rounds} rounds"
        print(show_seconds(title, seconds, "ours"), flush=True)
        figures[f"MXNet's operators ÷ ours, {threads} thread(s)"] = ratios(seconds, "MXNet", "ours")
    record(options, figures)


def measure(size: int, rounds: int) -> Seconds:
    """Return the seconds of both ways to the same sum, neither with a copy it could do without."""
    gradient = mx.nd.random.normal(shape=(size,))
    gradient.wait_to_read()
    array, stream = host_view(gradient), NoiseStream.from_operating_system()

    def mxnet() -> None:
        noise = mx.nd.random.normal(scale=STDDEV, shape=(size,))
        gradient[:] *= FACTOR
        gradient[:] += noise

    def ours() -> None:
        stream.scale_and_add(array, factor=FACTOR, stddev=STDDEV)

    return in_turn({"ours": timed(ours), "MXNet": timed(mxnet)}, rounds=rounds, pause=PAUSE)


if __name__ == "__main__":
    main()
