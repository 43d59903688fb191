"""Count epsilon twice: as the paper does, and as it holds for what Algorithm 1 releases.

Of a RUN it reads the ledger and nothing else; without one it takes the plan from the options.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, List, Sequence, Tuple

from edp_mx.cli.console import add_wide, refuse_other_than_png, tell
from edp_mx.cli.plan_options import PLAN_OPTIONS, add_plan_options, plan_of
from edp_mx.dp.accounting.accountants import check_claim, count_with
from edp_mx.dp.accounting.bound import Bound, unbounded
from edp_mx.dp.accounting.entries import Entry
from edp_mx.dp.accounting.plan import Plan
from edp_mx.errors import UserError
from edp_mx.reports.accountant_table import counts_as_json
from edp_mx.runtime.settings import refuse_unread

EXAMPLES = """\
examples:
  the paper's CLC on ATIS without decay, log10 epsilon 4.4, and what holds with its 8 GPUs:
    edp-mx account --noise-multiplier 0.0321 --epochs 50 --delta 5e-4 --workers 8
  the calibrated variant with an exponential decay, for a corpus of 4478 utterances:
    edp-mx account --noise-multiplier 20 --decay exponential --decay-rate 0.1 --epochs 30 \\
        --num-examples 4478 --workers 8 --micro-batch-size 16 --variant calibrated
  Poisson sampling, for another program (infinite or beyond a double: null, beside log10 or reason):
    edp-mx account --noise-multiplier 2 --epochs 5 --delta 1e-5 --variant calibrated \\
        --sampler poisson --sample-rate 0.01 --steps-per-epoch 100 --micro-batch-size 1.5 --json
  by an accountant of one's own choice, which is refused where it does not hold:
    edp-mx account --noise-multiplier 2 --epochs 5 --delta 1e-5 --variant calibrated \\
        --sampler poisson --sample-rate 0.01 --steps-per-epoch 100 --adjacency zero-out \\
        --accountant poisson_rdp

from the ledger of a run, finished or not, at its own delta, at another, and as a picture:
  edp-mx account runs/mine-20260101-120000
  edp-mx account runs/mine-20260101-120000 --delta 1e-6 --json
  edp-mx account runs/mine-20260101-120000 --plot epsilon.png     # and epsilon.csv
"""
# The plan, what was released, the ε that holds, and both as JSON and as lines.
Counted = Tuple[Plan, Sequence[Entry], Bound, Dict[str, Any], List[str]]


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("run_directory", nargs="?", type=Path, metavar="RUN", help="a run directory or a ledger")
    add("--noise-multiplier", type=float, metavar="Z", help="z0, of the first epoch")
    add_plan_options(parser, variant="published")
    add("--accountant", metavar="NAME", help="whose epsilon to state; it must be a bound")
    add("--plot", type=Path, metavar="FILE.png", help="epsilon over the epochs; beside it FILE.csv")
    add("--json", action="store_true", help="JSON in full double precision")
    add_wide(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print both ε, and draw them if asked to."""
    refuse_other_than_png(arguments.plot, "--plot")
    count = _count_plan if arguments.run_directory is None else _count_ledger
    plan, entries, bound, report, lines = count(arguments)
    if arguments.accountant is not None:
        stated = _state(arguments.accountant, plan, entries, bound)
        more = {**counts_as_json([stated])[0], "conditions": list(bound.conditions)}
        report = {**report, "stated": more}
        conditions = "".join(f", if {condition}" for condition in bound.conditions)
        lines = [*lines, "", f"epsilon by {stated.accountant}: {stated.epsilon}{conditions}"]
    tell(arguments, lambda: report, lambda: "\n".join(lines))
    if arguments.plot is not None:
        from edp_mx.reports.epsilon_curve import curve_of, plot_curve

        name = arguments.run_directory.resolve().name if arguments.run_directory else ""
        points = curve_of(plan, entries)
        plot_curve(points, delta=plan.delta, holds=bound, path=arguments.plot, name=name)
    return 0


def _count_ledger(arguments: argparse.Namespace) -> Counted:
    """Count what a run wrote down."""
    from edp_mx.reports.ledger_report import (
        account_of,
        ledger_as_json,
        ledger_as_lines,
        ledger_path,
    )

    refuse_unread(vars(arguments), PLAN_OPTIONS, "RUN brings its own plan")
    path = arguments.run_directory
    account = account_of(path, delta=arguments.delta)
    spent, lines = account.spent, ledger_as_lines(account, ledger_path(path))
    return spent.plan, spent.entries, spent.holds_if, ledger_as_json(account), lines


def _count_plan(arguments: argparse.Namespace) -> Counted:
    """Count what the options describe."""
    from edp_mx.reports.plan_report import PlanReport

    if arguments.noise_multiplier is None:
        raise UserError("give a RUN, or --noise-multiplier and --epochs of a plan")
    plan = plan_of(arguments, variant="published", noise_multiplier=arguments.noise_multiplier)
    report = PlanReport.of(plan)
    return plan, plan.entries(), report.holds, report.to_dict(), report.lines()


def _state(name: str, plan: Plan, entries: Sequence[Entry], bound: Bound) -> Bound:
    """Count by one accountant, which must hold; where `bound` has no limit, it has none either."""
    assert plan.release is not None  # a ledger without a release is refused
    check_claim(name, plan.release)
    if bound.reasons:
        return replace(unbounded(), accountant=name)
    return count_with(name, plan.composition(entries), delta=plan.delta)
