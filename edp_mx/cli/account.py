"""`edp-mx account`: both ε of a plan without running it, or of a run from its ledger alone."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence

from edp_mx.accounting.accountants import check_claim, count_with
from edp_mx.accounting.bound import Bound, unbounded
from edp_mx.cli.plan_options import PLAN_OPTIONS, add_plan_options, plan_of
from edp_mx.errors import UserError

if TYPE_CHECKING:
    from edp_mx.accounting.entries import Entry
    from edp_mx.accounting.plan import Plan

from edp_mx.cli.console import add_command, print_json

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


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = add_command(
        subparsers,
        "account",
        run,
        "epsilon as published and epsilon that holds, of a plan or of a run's ledger",
        EXAMPLES,
        description="Counts epsilon twice: as the paper does, and as it holds for what Algorithm 1 "
        "releases. Of a RUN it reads the ledger and nothing else; without one it takes the plan "
        "from the options.",
    )
    add = parser.add_argument
    add("run_directory", nargs="?", type=Path, metavar="RUN", help="a run directory or a ledger")
    add("--noise-multiplier", type=float, metavar="Z", help="z0, at epoch 0")
    add_plan_options(parser, variant="published")
    add("--accountant", metavar="NAME", help="whose epsilon to state; refused where it is no bound")
    add("--plot", type=Path, metavar="FILE.png", help="epsilon over the epochs; beside it FILE.csv")
    add("--json", action="store_true", help="JSON in full double precision")


def run(arguments: argparse.Namespace) -> int:
    """Print both ε, and draw them if asked to."""
    plot = arguments.plot
    if plot is not None and plot.suffix != ".png":
        raise UserError(f"--plot is {plot}; name a file that ends in .png")
    if arguments.run_directory is not None:
        return _run_ledger(arguments)
    return _run_plan(arguments)


def _run_ledger(arguments: argparse.Namespace) -> int:
    """From what a run wrote down."""
    from edp_mx.accounting.ledger_account import account_for
    from edp_mx.reports.ledger_report import ledger_as_json, ledger_as_lines, ledger_path

    given = [name for name in PLAN_OPTIONS if getattr(arguments, name) is not None]
    if given:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise UserError(f"RUN brings its own plan: leave out {options}, or leave out RUN")
    path = ledger_path(arguments.run_directory)
    account = account_for(path, delta=arguments.delta)
    spent = account.spent
    stated = _stated(arguments.accountant, spent.plan, spent.entries, spent.holds_if)
    report, lines = ledger_as_json(account), ledger_as_lines(account, path)
    _print(arguments, report, lines, stated, spent.holds_if)
    if arguments.plot is not None:
        _plot(arguments.plot, spent.plan, spent.entries, spent.holds_if)
    return 0


def _run_plan(arguments: argparse.Namespace) -> int:
    """From the options."""
    from edp_mx.reports.plan_report import PlanReport

    if arguments.noise_multiplier is None:
        raise UserError("give a RUN, or --noise-multiplier and --epochs of a plan")
    plan = plan_of(arguments, variant="published", noise_multiplier=arguments.noise_multiplier)
    report = PlanReport.of(plan)
    stated = _stated(arguments.accountant, plan, plan.entries(), report.holds)
    _print(arguments, report.to_dict(), report.lines(), stated, report.holds)
    if arguments.plot is not None:
        _plot(arguments.plot, plan, plan.entries(), report.holds)
    return 0


def _plot(path: Path, plan: Plan, entries: Sequence[Entry], holds: Bound) -> None:
    """ε over the epochs, as a picture and as numbers."""
    from edp_mx.reports.epsilon_curve import curve_of, plot_curve

    plot_curve(curve_of(plan, entries), delta=plan.delta, holds=holds, path=path)


def _stated(
    name: Optional[str], plan: Plan, entries: Sequence[Entry], bound: Bound
) -> Optional[Bound]:
    """What the named accountant says of the entries, if one was named.

    Args:
        bound: by the accountant that is claimed; where it is infinite for a reason, all are.

    Raises:
        UserError: it does not hold for them.
    """
    if name is None:
        return None
    assert plan.release is not None  # a ledger without a release is refused
    check_claim(name, plan.release)
    if bound.reasons:
        return replace(unbounded(), accountant=name)
    return count_with(name, plan.composition(entries), delta=plan.delta)


def _print(
    arguments: argparse.Namespace,
    report: Mapping[str, Any],
    lines: Sequence[str],
    stated: Optional[Bound],
    bound: Bound,
) -> None:
    """The report, as JSON or for a reader; at its end what the named accountant says."""
    from edp_mx.reports.accountant_table import counts_as_json

    more: Dict[str, Any] = {}
    said: List[str] = []
    if stated is not None:
        more = {"stated": {**counts_as_json([stated])[0], "conditions": list(bound.conditions)}}
        conditions = "".join(f", if {condition}" for condition in bound.conditions)
        said = ["", f"epsilon by {stated.accountant}: {stated.epsilon}{conditions}"]
    if arguments.json:
        print_json({**report, **more})
    else:
        print("\n".join([*lines, *said]))
