"""Where a training step's time goes, operator by operator, as MXNet's profiler sees it.

Run: .venv/bin/python benchmarks/step_profile.py [--model bert] [--variant dp_sgd_ghost] [--top 15]

Operators that wait for others or for the host (`WaitForVar`, copies that wait) are left out; what
NumPy does between operators (CRF, norms, noise, Adam) is in the step's time and in no operator's.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
from typing import Any, Dict, List, Tuple

import mxnet as mx
from mxnet import profiler
from rounds import WARM_UP
from steps import VARIANTS, settle_threads
from subjects import FAMILIES, Subject, synthetic_batch

from edp_mx.reports.table import render_table
from edp_mx.runtime import distributed

NO_OPERATORS = ("Wait", "Delete", "Imperative", "Copy", "Set", "Resource")


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", action="append", choices=FAMILIES, help="both if left out")
    parser.add_argument("--variant", choices=VARIANTS, default="sgd")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--top", type=int, default=12, help="operators shown")
    options = parser.parse_args()
    settle_threads()
    for family in options.model or FAMILIES:
        print(page(family, options), flush=True)


def page(family: str, options: argparse.Namespace) -> str:
    """The table of one model."""
    batch = synthetic_batch(family, examples=64, tokens=24, shortest=6)
    subject = Subject(family, batch, has_crf=True, workers=distributed.start())
    step = VARIANTS[options.variant](subject).step
    for _ in range(WARM_UP):
        step()
    what = {"profile_symbolic": True, "profile_imperative": True, "aggregate_stats": True}
    profiler.set_config(filename=os.devnull, **what)  # else it leaves a file where it is run
    profiler.set_state("run")
    seconds = statistics.median([step() for _ in range(options.steps)])
    mx.nd.waitall()
    profiler.set_state("stop")
    operators = operators_of(json.loads(profiler.dumps(reset=True, format="json")))
    rows = [
        [name, f"{count / options.steps:.0f}", f"{ms / options.steps:.1f}",
         f"{ms / options.steps / seconds / 1e3:.1%}"]
        for name, count, ms in operators[: options.top]
    ]  # fmt: skip
    known = sum(ms for _, _, ms in operators) / options.steps
    title = (
        f"\n{family}, {options.variant}: a step takes {1e3 * seconds:.0f} ms, "
        f"its {len(operators)} kinds of operators {known:.0f} ms\n"
    )
    return f"{title}\n{render_table(('operator', 'calls a step', 'ms a step', 'share'), rows)}"


def operators_of(profile: Dict[str, Any]) -> List[Tuple[str, int, float]]:
    """(name, calls, ms) of each operator, the dearest first; ours in Python among them."""
    times = profile["Time"]
    found = {**times["operator"], **times.get("Custom Operator", {})}
    rows = [
        (name, value["Count"], value["Total"])
        for name, value in found.items()
        if not name.startswith(NO_OPERATORS)
    ]
    return sorted(rows, key=lambda row: -row[2])


if __name__ == "__main__":
    main()
