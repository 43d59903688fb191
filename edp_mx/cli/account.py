"""Count epsilon twice: as the paper does, and as it holds for what Algorithm 1 releases.

Of a RUN it reads only the ledger. Of a CONFIG it counts the plan, and assumes that words, labels
and a start are public, which `edp-mx train CONFIG --check` verifies. Without either, it counts
the release that the options and --set describe.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Tuple

from edp_mx.cli.console import add_wide, refuse_other_than_png, tell
from edp_mx.cli.plan_options import SIZES, add_plan_options, delta_of, plan_of
from edp_mx.dp.accounting.bound import Bound
from edp_mx.dp.accounting.budget import committed_entries
from edp_mx.dp.accounting.entries import Entry
from edp_mx.dp.accounting.guarantee import guarantee
from edp_mx.dp.accounting.plan import Plan
from edp_mx.errors import UserError
from edp_mx.reports.plan_report import plan_as_json, plan_as_lines
from edp_mx.runtime.settings import refuse_unread

EXAMPLES = """\
examples:
  DP-SGD in the words of other libraries:
    edp-mx account --mechanism dp_sgd --sampler poisson --sample-rate 0.01 --epochs 10 \\
        --noise-multiplier 1.1 --delta 1e-5
  a configuration, before its corpus is read, with some keys changed:
    edp-mx account configs/mechanism/dp_sgd.yaml --num-examples 4478 --workers 2 \\
        --set training.epochs=20 privacy.target_epsilon=3
  the paper's CLC on ATIS without decay, log10 epsilon 4.4, and what holds with its 8 GPUs:
    edp-mx account --noise-multiplier 0.0321 --epochs 50 --delta 5e-4 --workers 8 \\
        --set privacy.variant=published
  the same where the layer scales are norms, of which the largest is 8.75:
    edp-mx account --noise-multiplier 0.0321 --epochs 50 --delta 5e-4 --workers 8 \\
        --layer-scales 8.75,0.61 --set privacy.variant=published
  a decay, for another program (infinite or beyond a double: null, beside log10 or reason):
    edp-mx account --noise-multiplier 20 --epochs 30 --num-examples 4478 --workers 8 --json \\
        --set "privacy.decay={kind: exponential, rate: 0.1}"

from the ledger of a run, finished or not, at its own delta, at another, and as a picture:
  edp-mx account runs/mine-20260101-120000
  edp-mx account runs/mine-20260101-120000 --delta 1e-6 --json
  edp-mx account runs/mine-20260101-120000 --plot epsilon.png     # and epsilon.csv

The options are the keys that every question needs (noise, epochs, delta, mechanism, sampler, batch)
and what no configuration has (examples, rate, workers, layer scales); --set has all other keys,
whose defaults are those of a configuration (docs/settings.md).
"""
OPTIONS = ("noise_multiplier", "epochs", "batch_size", "delta", "mechanism", "sampler")
# The plan, its releases, the ε that holds, and both as JSON and as lines.
Counted = Tuple[Plan, Sequence[Entry], Bound, Dict[str, Any], List[str]]


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("paths", nargs="*", type=Path, metavar="RUN|CONFIG",
        help="a run directory or a ledger; or YAML files, laid over each other")  # fmt: skip
    add_plan_options(parser, *OPTIONS)
    add("--plot", type=Path, metavar="FILE.png", help="epsilon over the epochs; beside it FILE.csv")
    add("--json", action="store_true", help="JSON in full double precision")
    add_wide(parser)


def run(arguments: argparse.Namespace) -> int:
    refuse_other_than_png(arguments.plot, "--plot")
    run = _run_in(arguments.paths)
    plan, entries, bound, report, lines = (
        _count_plan(arguments) if run is None else _count_ledger(arguments, run)
    )
    tell(arguments, lambda: report, lambda: "\n".join(lines))
    if arguments.plot is not None:
        from edp_mx.reports.epsilon_curve import curve_of, plot_curve

        name = "" if run is None else run.resolve().name
        points = curve_of(plan, entries)
        plot_curve(points, delta=plan.delta, holds=bound, path=arguments.plot, name=name)
    return 0


def _run_in(paths: Sequence[Path]) -> Optional[Path]:
    """Return the run or ledger among the paths; None where they are configurations, or none."""
    runs = [path for path in paths if path.suffix not in (".yaml", ".yml")]
    if runs and len(paths) > 1:
        raise UserError(f"{runs[0]} is no YAML file: name one RUN, or configurations, not both")
    return runs[0] if runs else None


def _count_ledger(arguments: argparse.Namespace, run: Path) -> Counted:
    from edp_mx.reports.ledger_report import (
        account_of,
        ledger_as_json,
        ledger_as_lines,
        ledger_path,
    )

    others = [name for name in (*OPTIONS, *SIZES, "overrides") if name != "delta"]
    refuse_unread(vars(arguments), others, "RUN brings its own plan")
    delta = None if arguments.delta is None else delta_of(arguments.delta)
    account = account_of(run, delta=delta)
    spent, lines = account.spent, ledger_as_lines(account, ledger_path(run))
    return spent.plan, spent.entries, spent.holds_if, ledger_as_json(account), lines


def _count_plan(arguments: argparse.Namespace) -> Counted:
    plan = plan_of(arguments, arguments.paths)[0]
    said = guarantee(plan, committed_entries(plan, ()) if plan.release else None)
    return said.plan, said.entries, said.holds, plan_as_json(said), plan_as_lines(said)
