"""Estimate the scores of DP-SGD with n utterances at an epsilon, from records of finished runs.

SER, intent accuracy and slot F1 are interpolated between the measured runs nearest to both numbers,
for each corpus, and the epsilon of their settings is counted again. Sizes and epsilons too far from
all runs are refused.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from edp_mx.cli.console import add_wide, require_above_zero, require_at_least, tell, whole
from edp_mx.errors import UserError
from edp_mx.runs.record import RECORDS

EXAMPLES = """\
examples:
  what to expect with 5000 utterances in the training part at epsilon 4:
    edp-mx plan --num-examples 5000 --epsilon 4
  from records of your own as well:
    edp-mx plan --num-examples 5000 --epsilon 4 --records results runs
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--num-examples", type=whole, required=True, metavar="n", help="size of the training part")
    add("--epsilon", type=float, required=True, metavar="E", help="epsilon that is to hold")
    add("--records", nargs="+", type=Path, default=[RECORDS], metavar="FOLDER",
        help=f"records, runs or folders of them ({RECORDS}, in a clone)")  # fmt: skip
    add("--json", action="store_true", help="JSON in full double precision")
    add_wide(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the expected scores, their sources, and the next command."""
    n, epsilon = arguments.num_examples, arguments.epsilon
    require_at_least(n, 1, "--num-examples")
    require_above_zero(epsilon, "--epsilon")
    if arguments.records == [RECORDS] and not RECORDS.exists():
        raise UserError(
            f"there is no {RECORDS} here: the records come with the repository, not with the "
            "installed package; call this in a clone, or name a folder of records with --records"
        )
    from edp_mx.reports.calibration_report import CalibrationReport
    from edp_mx.reports.expectation import Expectation
    from edp_mx.runs.expected_scores import exact_runs, expect, nearest
    from edp_mx.runs.measurements import measurements
    from edp_mx.runs.recipe import Recipe
    from edp_mx.runs.records import collect

    runs = exact_runs(measurements([each.record for each in collect(arguments.records)]))
    if not runs:
        raise UserError(
            f"{', '.join(map(str, arguments.records))}: no run of DP-SGD for utterances with a "
            "finite ε at δ = 1/(2n) and adjacency zero_out, so that nothing can be told"
        )
    expected = expect(runs, num_examples=n, epsilon=epsilon)
    recipe = Recipe.of(
        nearest(runs, num_examples=n, epsilon=epsilon), num_examples=n, epsilon=epsilon
    )
    calibration = CalibrationReport.of(recipe.plan(), target_epsilon=epsilon)
    found = Expectation(expected, recipe, calibration)
    return tell(arguments, found.to_dict, lambda: "\n".join(found.lines()))
