"""What all models that were trained on a corpus spend of it together.

The ledgers of the runs are composed exactly, as if they were the steps of one training. Where their
training parts differ, the corpora are read again, and each utterance (or user) is charged for the
runs that it is in. Trials of a sweep are runs, too.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, Dict, List

from edp_mx.cli.console import tell
from edp_mx.runtime.console_text import count_of

EXAMPLES = """\
examples:
  edp-mx budget runs/first runs/second
  edp-mx budget runs sweeps/atis --delta 1e-6
  edp-mx budget runs --json
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("paths", nargs="+", type=Path, metavar="RUN",
        help="runs, or folders that hold some")  # fmt: skip
    add("--delta", type=float, metavar="D", help="of all together (default: the runs' smallest)")
    add("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    from edp_mx.dp.accounting.choices import choose_delta
    from edp_mx.runs.corpus_budget import Spender, Together, count_by_record, spenders_below

    spenders: List[Spender] = spenders_below(arguments.paths)
    plans = [each.spent.plan for each in spenders]
    most = max(plan.num_records or 1 for plan in plans)
    least = min(plan.delta for plan in plans)
    given = least if arguments.delta is None else arguments.delta
    delta = choose_delta(num_examples=most, delta=given)
    found: List[Together] = count_by_record(spenders, delta=delta)
    return tell(
        arguments,
        lambda: _as_json(spenders, found, delta),
        lambda: "\n".join(_lines(spenders, found, delta)),
    )


def _as_json(spenders: Any, found: Any, delta: float) -> Dict[str, Any]:
    runs = [{"run": each.name, "delta": each.spent.plan.delta, **each.spent.bounds_as_json()}
            for each in spenders]  # fmt: skip
    together = [{"runs": list(each.names), "records": each.num_records, **each.bound.to_dict()}
                for each in found]  # fmt: skip
    return {"delta": delta, "runs": runs, "together": together}


def _lines(spenders: Any, found: Any, delta: float) -> List[str]:
    """Return a table of the runs, and the ε of the records that are in most of them."""
    from edp_mx.reports.table import render_table

    record = "user" if all(each.is_of_users for each in spenders) else "utterance"
    rows = [[each.name, each.spent.plan.mechanism, each.spent.holds_if.epsilon.in_words(),
             f"{each.spent.plan.delta:.3g}"] for each in spenders]  # fmt: skip
    lines = [render_table(["run", "mechanism", "ε, if its inputs are public", "δ"], rows), ""]
    lines.append(f"Together, at delta {delta:.3g}, for the {record}s that are in most runs:")
    for each in found:
        n = each.num_records
        size = f"all {record}s" if n is None else count_of(n, record)
        lines.append(f"  epsilon {each.bound.epsilon.in_words()}: {size} in "
                     f"{count_of(len(each.names), 'run')} ({', '.join(each.names)})")  # fmt: skip
        lines += [f"    if {text}" for text in each.bound.conditions]
    return lines
