"""Attack a run on its training and test part: tell utterances that it was trained on from others.

Each attack writes RUN/attack-NAME/ with numbers, pictures and report.html, and RUN/report.html
anew.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, Dict

from edp_mx.attacks.request import AUTOMATIC, AttackRequest
from edp_mx.cli.console import (
    add_overrides,
    add_wide,
    print_json,
    refuse_in_job,
    refuse_other_than_png,
    show,
    values_of,
    whole,
)
from edp_mx.errors import UserError
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.settings import refuse_unread

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
    add("--shadow", action="append", nargs="?", const=AUTOMATIC, metavar="RUN|CONFIG",
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
    add("--from-scores", action="store_true", help="use saved scores, not the model")
    add("--balanced", action="store_true", help="as many members as others of each label")
    add("--size", type=whole, metavar="n", help="judge at most n members (all)")
    add("--seed", type=whole, help="seed of the draw and the bootstrap (0)")
    add("--json", action="store_true", help="print JSON")
    add_wide(parser)
    add("--runs", type=Path, help="folder for a trained shadow (runs)")
    add_overrides(parser)


def run(arguments: argparse.Namespace) -> int:
    from edp_mx.api import attack_and_draw

    refuse_in_job("edp-mx attack runs in one process")
    if arguments.compare:
        return _compare(arguments)
    said = []
    for outcome in attack_and_draw(request_of(arguments)):
        said.append(outcome)
        if not arguments.json:
            text = _describe(outcome, RunDirectory(arguments.run_directories[0]))
            show(text, is_wide=arguments.wide)
    if arguments.json:
        print_json(said)
    return 0


def request_of(arguments: argparse.Namespace) -> AttackRequest:
    """Return the request of the options; refuse those of other attacks."""
    if len(arguments.run_directories) != 1 or arguments.out is not None:
        raise UserError("name one RUN to attack; several, and --out, go with --compare")
    return AttackRequest(arguments.run_directories[0], **values_of(AttackRequest, arguments))


def _compare(arguments: argparse.Namespace) -> int:
    from edp_mx.reports.attack_epsilon import compare_attacks, plot_attacks, points_of

    of_attacks = [*values_of(AttackRequest, arguments), "json"]
    refuse_unread(vars(arguments), of_attacks, "--compare prints a table of earlier attacks")
    refuse_other_than_png(arguments.out, "--out")
    points = points_of([RunDirectory.existing(path) for path in arguments.run_directories])
    show(compare_attacks(points), is_wide=arguments.wide)
    if arguments.out is not None:
        plot_attacks(points, arguments.out)
    return 0


def _describe(outcome: Dict[str, Any], run: RunDirectory) -> str:
    """Return the table of an attack, its limits, and the path of its page."""
    from edp_mx.attacks.directory import attack_folder
    from edp_mx.reports.attack_page import HEADER, attack_rows, say_judged, warnings_of
    from edp_mx.reports.exposure_page import describe_exposure
    from edp_mx.reports.run_head import verdict_of
    from edp_mx.reports.table import render_table
    from edp_mx.runs.attack_files import AttackOutcome
    from edp_mx.runtime.structured import structure

    name, facts = outcome["attack"], outcome["facts"]
    if name == "canaries":
        said = [describe_exposure(outcome["canaries"], facts)]
    else:
        attack = structure(outcome, AttackOutcome)
        table = render_table(HEADER, attack_rows(attack))
        first, why = attack.results[0], (outcome["origin"] or {}).get("left_out")
        judged = f"judged: {say_judged(first)}" + f"; left out: {why}" * bool(why)
        said = [table, *warnings_of(facts), judged, verdict_of(first)]
    return "\n".join([*said, f"{attack_folder(run, name) / 'report.html'}\n"])
