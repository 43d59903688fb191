"""Find the smallest z0 at which the epsilon that HOLDS for the whole plan is at most the target.

Say what each variant gives with it; with --mechanism dp_sgd there is one.
"""

from __future__ import annotations

import argparse

from edp_mx.cli.console import add_wide, tell
from edp_mx.cli.plan_options import add_plan_options, plan_of

EXAMPLES = """\
examples:
  epsilon 8 for 4478 utterances, 30 epochs with a slow decay, 8 workers:
    edp-mx calibrate --target-epsilon 8 --num-examples 4478 --epochs 30 --decay exponential \\
        --decay-rate 0.05 --workers 8 --micro-batch-size 8
  without decay, and with Poisson sampling (q = N M / n), which asks for less noise:
    edp-mx calibrate --target-epsilon 8 --num-examples 4478 --epochs 30 --workers 8 \\
        --micro-batch-size 8 --sampler poisson
  Algorithm 1 to the letter, for another program:
    edp-mx calibrate --target-epsilon 2 --delta 1e-5 --epochs 10 --workers 8 \\
        --micro-batch-size 16 --variant published --json
  DP-SGD, which clips each utterance, between neighbours that lack one:
    edp-mx calibrate --mechanism dp_sgd --target-epsilon 3 --num-examples 4478 --epochs 60 \\
        --workers 2 --micro-batch-size 256 --sampler poisson --adjacency zero-out

In a configuration `privacy.target_epsilon: 8` in place of noise_multiplier does the same.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--target-epsilon", type=float, required=True, metavar="E", help="epsilon that is to hold")
    add_plan_options(parser, variant="calibrated")
    add("--json", action="store_true", help="JSON in full double precision")
    add_wide(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print z₀ and both ε."""
    from edp_mx.reports.calibration_report import CalibrationReport

    plan = plan_of(arguments, variant="calibrated")
    report = CalibrationReport.of(plan, target_epsilon=arguments.target_epsilon)
    return tell(arguments, report.to_dict, lambda: "\n".join(report.lines()))
