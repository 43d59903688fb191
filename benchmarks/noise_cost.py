"""What noise costs: a gradient scaled and noised by us, and by MXNet's operators.

Run: .venv/bin/python benchmarks/noise_cost.py [--threads 1 2] [--rounds 15] [--json FILE]

Our noise comes from AES-256 with a key of the operating system, MXNet's from a generator with a
constant seed. Each number of threads has a process of its own.
"""

import argparse
import json

import measuring
import mxnet as mx

from edp_mx.dp.privacy.flat import host_view
from edp_mx.dp.privacy.noise import NoiseStream

SIZE = 14_230_752  # gradients of the smaller BERT
FACTOR, STDDEV = 0.9, 0.1


def main() -> None:
    """Measure in one process for each number of threads, and print."""
    parser = measuring.build_parser(__doc__, rounds=15, has_models=False)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="default: 1 2")
    parser.add_argument("--size", type=int, default=SIZE, help="floats of the gradient")
    parser.add_argument("--is-inner", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.is_inner:
        print(json.dumps(measure(options.size, options.rounds)))
        return
    figures: measuring.Figures = {}
    for threads in options.threads:
        arguments = ["--is-inner", f"--rounds={options.rounds}", f"--size={options.size}"]
        seconds = measuring.in_a_process(__file__, *arguments, OMP_NUM_THREADS=str(threads))
        title = f"{options.size:,} floats, {threads} thread(s), {options.rounds} rounds"
        print(measuring.show_seconds(title, seconds, "ours"), flush=True)
        figures[f"MXNet's operators ÷ ours, {threads} thread(s)"] = measuring.ratios(
            seconds, "MXNet", "ours"
        )
    measuring.record(options, figures)


def measure(size: int, rounds: int) -> measuring.Seconds:
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

    return measuring.in_turn(
        {"ours": measuring.timed(ours), "MXNet": measuring.timed(mxnet)},
        rounds=rounds,
        pause=measuring.PAUSE,
    )


if __name__ == "__main__":
    main()
