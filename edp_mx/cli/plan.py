"""Estimate the scores of DP-SGD with n utterances at an epsilon, from records of finished runs.

SER, intent accuracy and slot F1 are interpolated between the measured runs nearest to both numbers,
for each corpus and start, and the epsilon of their settings is counted again. Sizes, epsilons and
numbers of labels too far from all runs are refused.
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
  the same for 40 intents without slots, from a public encoder:
    edp-mx plan --num-examples 5000 --epsilon 4 --intents 40 --slots 0 \\
      --start-from checkpoints/minilm
  from records of your own as well:
    edp-mx plan --num-examples 5000 --epsilon 4 --records results runs
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--num-examples", type=whole, required=True, metavar="n", help="size of the training part")
    add("--epsilon", type=float, required=True, metavar="E", help="epsilon that is to hold")
    add("--intents", type=whole, metavar="I", help="of the corpus: only corpora with about as many")
    add("--slots", type=whole, metavar="S", help="of the corpus, perhaps 0; with --intents")
    add("--start-from", type=Path, metavar="RUN|CHECKPOINT", help="what the model starts from")
    add("--records", nargs="+", type=Path, default=[RECORDS], metavar="FOLDER",
        help=f"records, runs or folders of them ({RECORDS}, in a clone)")  # fmt: skip
    add("--json", action="store_true", help="JSON in full double precision")
    add_wide(parser)


def run(arguments: argparse.Namespace) -> int:
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
    from edp_mx.runs.file_types import Labels
    from edp_mx.runs.recipe import Recipe
    from edp_mx.runs.records import collect
    from edp_mx.runs.wanted import StartKind, Wanted

    if (arguments.intents is None) != (arguments.slots is None):
        raise UserError("--intents and --slots belong together; give both, or neither")
    labels = None if arguments.intents is None else Labels(arguments.intents, arguments.slots)
    start = StartKind.at(arguments.start_from) if arguments.start_from else None
    wanted = Wanted(n, epsilon, labels, start)
    runs = exact_runs((each.record for each in collect(arguments.records)), start)
    if not runs:
        raise UserError(
            f"{', '.join(map(str, arguments.records))}: no run of DP-SGD for utterances with a "
            "finite ε at δ = 1/(2n) and adjacency zero_out, so that nothing can be told"
        )
    expected = expect(runs, wanted)
    points = [p for each in expected if each.rank == expected[0].rank for p in each.points]
    source = nearest(points, num_examples=n, epsilon=epsilon)
    fits = start is not None and start.family == source.family
    given = arguments.start_from if fits else None
    recipe = Recipe.of(source, num_examples=n, epsilon=epsilon, start=given)
    calibration = CalibrationReport.of(recipe.plan(), target_epsilon=epsilon)
    found = Expectation(wanted, expected, recipe, calibration)
    return tell(arguments, found.to_dict, lambda: "\n".join(found.lines()))
