"""Where a step's time goes: its operators by kind, by MXNet's own profiler.

Run: .venv/bin/python benchmarks/step_profile.py [--model clc bert] [--rounds 5] [--json FILE]

One operator runs at a time, so that what is left of the step is spent outside of them: an LSTM in
ghost clipping and its rules, norms, noise, the update.
"""

import json
import os
import re
from typing import Dict

import measuring
import mxnet as mx
from steps import VARIANTS, Step
from subjects import Subject, paper_model, synthetic_batch

from edp_mx.reports.table import render_table, show_quartiles
from edp_mx.runtime import distributed
from edp_mx.runtime.distributed import Workers

STEPS = ("sgd", "edp_sgd", "dp_sgd_ghost")
KINDS = {  # by the operators' names; the first that matches counts
    "": r"WaitForVar|DeleteVariable",  # waiting for others
    "dense layers": r"FullyConnected",
    "attention": r"edp_attention",
    "LSTM": r"BiLSTM",
    "convolution": r"Convolution|edp_first_max",
    "other operators": r"",
}
OUTSIDE = "outside of operators"


def main() -> None:
    """Profile, and print."""
    options = measuring.build_parser(__doc__, rounds=5).parse_args()
    measuring.settle_threads()
    workers = distributed.start()
    for family in options.model:
        columns = [_column(family, name, options.rounds, workers) for name in STEPS]
        rows = [
            [kind, *(show_quartiles(column[kind], 0) for column in columns)] for kind in columns[0]
        ]
        title = f"{family}: % of a step's time, {options.rounds} rounds: median (quartiles)"
        print(f"\n{title}\n\n{render_table(('', *STEPS), rows)}", flush=True)
    measuring.record(options, {})


def _column(family: str, name: str, rounds: int, workers: Workers) -> measuring.Figures:
    batch = synthetic_batch(family, seed=workers.rank)
    step = VARIANTS[name](Subject(paper_model(family), batch, workers=workers))
    mx.profiler.set_config(
        profile_symbolic=True,
        profile_imperative=True,
        profile_api=False,
        aggregate_stats=True,
        filename=os.devnull,
    )
    for _ in range(measuring.WARM_UP):
        step()
    found = [_shares(step) for _ in range(rounds)]
    return {kind: [shares[kind] for shares in found] for kind in found[0]}


def _shares(step: Step) -> Dict[str, float]:
    """Take a step; return each kind's share of its time, in %."""
    mx.profiler.set_state("run")
    seconds = step()
    mx.profiler.set_state("stop")
    spent = json.loads(mx.profiler.dumps(reset=True, format="json"))["Time"]
    shares = dict.fromkeys([*filter(None, KINDS), OUTSIDE], 0.0)
    for category in spent.values():
        for operator, times in category.items():
            kind = next(kind for kind, names in KINDS.items() if re.search(names, operator))
            if kind:
                shares[kind] += times["Total"] / 10 / seconds  # milliseconds
    shares[OUTSIDE] = 100 - sum(shares.values())
    return shares


if __name__ == "__main__":
    main()
