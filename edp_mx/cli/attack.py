"""Attack a run on its training and test part: tell utterances that it was trained on from others.

Each attack writes RUN/attack-NAME/ with numbers, pictures and report.html, and RUN/report.html
anew.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any, Dict, Iterator

from edp_mx.cli.attack_parts import (
    DEFAULT_SHADOW,
    Report,
    check_options,
    prepare_canaries,
    prepare_lira,
    prepare_scores,
    prepare_shadow,
)
from edp_mx.cli.console import (
    add_overrides,
    add_wide,
    print_json,
    refuse_other_than_png,
    show,
    start_logging,
    whole,
)
from edp_mx.errors import UserError
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.files import keep_private

EXAMPLES = """\
examples:
  loss thresholds, which need nothing but the run (a minute):
    edp-mx attack runs/atis_clc-20260101-120000
  also the attack of the paper, with a shadow model that was trained before:
    edp-mx attack RUN --shadow runs/snips_clc-20260101-130000
  or with one that is trained first, from a configuration or with the run's settings on another
  corpus:
    edp-mx attack RUN --shadow configs/snips_clc.yaml --set training.epochs=10
    edp-mx attack RUN --shadow configs/snips_clc.yaml --shadow configs/mechanism/edp_linear.yaml
    edp-mx attack RUN --shadow
  LiRA with 16 shadow models on the run's corpus, one per core at a time, smaller ones with --set;
  an interrupted attack continues:
    edp-mx attack RUN --lira 16 --set training.epochs=10 model.hidden_size=128
  the same shadow models against another run on the same split, e.g. a private one:
    edp-mx attack RUN2 --shadows-of RUN
  exposure of phone numbers in the training part, by training anew:
    edp-mx attack RUN --canaries
  a table of attacked runs, and a picture of AUC against epsilon:
    edp-mx attack --compare RUN1 RUN2 RUN3 --out attacks.png
  again, from the saved scores:
    edp-mx attack RUN --shadow SHADOW_RUN --from-scores
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("run_directories", nargs="+", type=Path, metavar="RUN", help="a run directory")
    add("--shadow", action="append", nargs="?", const=DEFAULT_SHADOW, metavar="RUN|CONFIG",
        help="attack of the paper by this shadow; without a value one is trained on another "
        "corpus; several configurations, each with --shadow, are laid over each other"
    )  # fmt: skip
    add("--lira", type=whole, metavar="K", help="LiRA with K shadows: 4 or more, usually 16 to 64")
    add("--jobs", type=whole, metavar="n", help="shadows of LiRA that train at once (cores)")
    add("--shadows-of", type=Path, metavar="RUN",
        help="LiRA with the shadow models of another run on the same split")  # fmt: skip
    add("--canaries", action="store_true", help="exposure of phone numbers, by training anew")
    add("--canary-count", type=whole, metavar="n", help="canaries per 1, 10 and 100 repeats (3)")
    add("--canary-digits", type=whole, metavar="n", help="digits of a phone number (7)")
    add("--candidates", type=whole, metavar="n", help="other numbers to compare it with (10000)")
    add("--compare", action="store_true", help="compare runs that were attacked before")
    add("--out", type=Path, metavar="FILE.png", help="with --compare: AUC against epsilon")
    add("--from-scores", action="store_true", help="use the saved scores")
    add("--balanced", action="store_true", help="equal numbers of both sides for each intent")
    add("--size", type=whole, metavar="n", help="judge at most n members (all)")
    add("--seed", type=whole, help="seed of the draw and the bootstrap (0)")
    add("--json", action="store_true", help="print JSON")
    add_wide(parser)
    add("--runs", type=Path, help="folder for a trained shadow (runs)")
    add_overrides(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the attacks and print their outcomes."""
    if int(os.environ.get("HOROVOD_SIZE", "1")) > 1:
        raise UserError("edp-mx attack runs in one process: leave out horovodrun")
    if arguments.compare:
        check_options(arguments)
        return _compare(arguments)
    said = []
    for value, text in attack(arguments):
        said.append(value)
        if not arguments.json:
            show(text, is_wide=arguments.wide)
    if arguments.json:
        print_json(said)
    return 0


def attack(arguments: argparse.Namespace) -> Iterator[Report]:
    """Yield the outcome of each attack on a run, the quickest first, and write its page.

    All options and settings are checked before the first.
    """
    from edp_mx.reports.run_page import write_run_page

    check_options(arguments)
    directory = RunDirectory.existing(arguments.run_directories[0])
    if not directory.has("results"):
        raise UserError(f"{directory.path} is not finished: there is no model to attack yet")
    start_logging(is_first=True)
    keep_private()  # scores say who is in the training part
    for report in _attacks(arguments, directory):
        write_run_page(directory)
        yield report


def _compare(arguments: argparse.Namespace) -> int:
    """Print a table of attacks, and draw them if asked to."""
    from edp_mx.reports.attack_epsilon import compare_attacks, plot_attacks, points_of

    refuse_other_than_png(arguments.out, "--out")
    points = points_of([RunDirectory.existing(path) for path in arguments.run_directories])
    if arguments.json:
        print_json([point._asdict() for point in points])
    else:
        show(compare_attacks(points), is_wide=arguments.wide)
    if arguments.out is not None:
        plot_attacks(points, arguments.out)
    return 0


def _attacks(arguments: argparse.Namespace, directory: RunDirectory) -> Iterator[Report]:
    from edp_mx.attacks.directory import write_outcome
    from edp_mx.attacks.membership.shadow_attack import attack_by_shadow
    from edp_mx.attacks.membership.thresholds import threshold_attacks

    path, scores_of = directory.path, prepare_scores(arguments)
    shadow_run = prepare_shadow(arguments, path) if arguments.shadow is not None else None
    wants_lira = arguments.lira is not None or arguments.shadows_of is not None
    by_lira = prepare_lira(arguments, path) if wants_lira else None
    by_canaries = prepare_canaries(arguments, directory) if arguments.canaries else None
    scores = scores_of(path)
    found = write_outcome(directory, "threshold", threshold_attacks(scores), scores, facts={})
    yield _report(directory, found)
    if shadow_run is not None:
        other = shadow_run()
        found = attack_by_shadow(path, scores, shadow_path=other, shadow=scores_of(other))
        yield _report(directory, found)
    if by_lira is not None:
        yield _report(directory, by_lira(scores))
    if by_canaries is not None:
        yield by_canaries()


def _report(directory: RunDirectory, outcome: Dict[str, Any]) -> Report:
    """Write the page and return the outcome."""
    from edp_mx.attacks.directory import attack_folder
    from edp_mx.reports.attack_page import HEADER, attack_rows, warnings_of, write_report
    from edp_mx.reports.table import render_table

    page = write_report(attack_folder(directory, outcome["attack"]))
    table = render_table(HEADER, attack_rows(outcome))
    said = [table, *warnings_of(outcome["facts"]), f"{page}\n"]
    return outcome, "\n".join(said)
