"""Find the smallest z0 at which the epsilon that HOLDS for the whole plan is at most the target.

It prints the z0 of each variant that gives the same noise (dp_sgd has one variant). Words, labels
and a start are taken to be public.
"""

from __future__ import annotations

import argparse

from edp_mx.cli.console import add_configs, add_wide, tell
from edp_mx.cli.plan_options import add_plan_options, plan_of
from edp_mx.errors import UserError

EXAMPLES = """\
examples:
  epsilon 8 for 4478 utterances, 30 epochs with a slow decay, 8 workers:
    edp-mx calibrate --target-epsilon 8 --num-examples 4478 --epochs 30 --workers 8 \\
        --set "privacy.decay={kind: exponential, rate: 0.05}"
  without decay, and with Poisson sampling (q = B / n), which asks for less noise:
    edp-mx calibrate --target-epsilon 8 --num-examples 4478 --epochs 30 --workers 8 \\
        --sampler poisson --batch-size 64
  Algorithm 1 to the letter, for another program:
    edp-mx calibrate --target-epsilon 2 --delta 1e-5 --epochs 10 --workers 8 --json \\
        --set privacy.variant=published
  DP-SGD, which clips each utterance, between neighbours that lack one:
    edp-mx calibrate --mechanism dp_sgd --target-epsilon 3 --num-examples 4478 --epochs 60 \\
        --workers 2 --sampler poisson --batch-size 512 --set privacy.adjacency=zero_out
  a configuration for a training part of 4478 utterances, which `train` would calibrate alike:
    edp-mx calibrate configs/mechanism/dp_sgd.yaml --num-examples 4478 --workers 2 \\
        --target-epsilon 3

The options are the keys that every question needs (target, epochs, delta, mechanism, sampler,
batch) and what no configuration has (examples, rate, workers, layer scales); --set has all other
keys, whose defaults are those of a configuration (docs/settings.md).
In a configuration `privacy.target_epsilon: 8` in place of noise_multiplier does the same.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add_configs(parser, nargs="*")
    add_plan_options(
        parser, "target_epsilon", "epochs", "batch_size", "delta", "mechanism", "sampler"
    )
    add("--json", action="store_true", help="JSON in full double precision")
    add_wide(parser)


def run(arguments: argparse.Namespace) -> int:
    from edp_mx.reports.calibration_report import CalibrationReport

    plan, target = plan_of(arguments, arguments.configs)
    if target is None:
        raise UserError("give --target-epsilon, or privacy.target_epsilon in the configuration")
    report = CalibrationReport.of(plan, target_epsilon=target)
    return tell(arguments, report.to_dict, lambda: "\n".join(report.lines()))
