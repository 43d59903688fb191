"""How fast each library at hand multiplies matrices of the shapes of a step.

Run: .venv/bin/python benchmarks/products.py [--rounds 7] [--json FILE]

NumPy's and MXNet's OpenBLAS, SciPy's newer one, and oneDNN behind MXNet's FullyConnected.
"""

import os
from functools import partial
from statistics import median
from typing import Callable, Dict, List

import measuring
import mxnet as mx
import numpy as np
from scipy.linalg.blas import sgemm

from edp_mx.reports.table import render_table, show_quartiles

SHAPES = (  # (M, K, N), and what multiplies so
    (1536, 312, 1200, "BERT, feed-forward"),
    (1200, 1536, 312, "BERT, a weight's gradient"),
    (1536, 312, 312, "BERT, projection"),
    (977, 330, 1536, "CLC, gates of all tokens"),
    (64, 384, 1536, "CLC, gates of a step"),
    (1536, 977, 330, "CLC, a weight's gradient"),
    (1536, 1536, 1536, "a large product"),
)
AT_ONCE = 5


def main() -> None:
    options = measuring.build_parser(__doc__, rounds=7, has_models=False).parse_args()
    measuring.settle_threads()
    rows, shares = [], []
    for *shape, what in SHAPES:
        ways = products(*shape)
        seconds = measuring.in_turn(
            {name: measuring.timed(way) for name, way in ways.items()},
            rounds=options.rounds,
            pause=measuring.PAUSE,
        )
        best = min(median(values) for values in seconds.values())
        shares.append(best / median(seconds["numpy"]))
        flops = 2e-9 * AT_ONCE * np.prod(shape)
        rates = [show_quartiles([flops / each for each in seconds[name]], 0) for name in ways]
        rows.append(["×".join(map(str, shape)), what, *rates])
    threads = os.environ["OMP_NUM_THREADS"]
    print(f"\nGFLOP/s, {threads} thread(s), {options.rounds} rounds: median (quartiles)\n")
    print(render_table(("M×K×N", "of", *ways), rows), flush=True)
    measuring.record(options, {"numpy ÷ the best library, FLOP/s": shares})


def products(rows: int, inner: int, columns: int) -> Dict[str, Callable[[], List[object]]]:
    """Return each library's way to multiply (M, K) by (K, N), `AT_ONCE` times."""
    generator = np.random.default_rng(0)
    left = generator.normal(size=(rows, inner)).astype(np.float32)
    right = generator.normal(size=(inner, columns)).astype(np.float32)
    ours, turned = mx.nd.array(left), mx.nd.array(np.ascontiguousarray(right.T))
    fortran = np.asfortranarray(left), np.asfortranarray(right)
    ways = {
        "numpy": partial(np.matmul, left, right),
        "scipy": partial(sgemm, 1.0, *fortran),
        "MXNet's dot": partial(mx.nd.dot, ours, turned, transpose_b=True),
        "FullyConnected": partial(
            mx.nd.FullyConnected, ours, turned, no_bias=True, num_hidden=columns
        ),
    }
    return {
        name: lambda multiply=multiply: [multiply() for _ in range(AT_ONCE)]
        for name, multiply in ways.items()
    }


if __name__ == "__main__":
    main()
