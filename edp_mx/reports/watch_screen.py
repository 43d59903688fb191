"""A run while it lasts, on one screen, from the files in its folder."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from edp_mx.dp.accounting.lognumber import LogNumber, log_of
from edp_mx.errors import UserError
from edp_mx.reports.table import render_table
from edp_mx.runs.recount import with_counted_epsilons
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.json_text import read_json
from edp_mx.runtime.progress import duration
from edp_mx.tasks.registry import TASKS

LINES = 15  # of the table
WIDTH = 40  # of the bar


def _epsilon(value: float) -> str:
    return LogNumber(log_of(value)).short(narrow=True)


_METRICS = [metric for task in TASKS.values() for metric in task.metrics]
# key in `metrics.jsonl`, name, format
COLUMNS: Tuple[Tuple[str, str, Callable[[Any], str]], ...] = (
    ("epoch", "epoch", "{:g}".format),
    ("loss", "loss", "{:.4f}".format),
    *((metric.key, metric.narrow_heading, "{:.2f}".format) for metric in _METRICS),
    ("epsilon_holds_if", "ε so far", _epsilon),
    ("epsilon_as_published", "ε publ.", _epsilon),
    ("clipped_fraction", "clip %", lambda value: f"{100 * value:.0f}"),
)


def screen(run: RunDirectory) -> str:
    """Return the screen of a run: its state, the time left, its last epochs."""
    rows = read_rows(run, LINES)
    lines = [f"{run.path}", state_of(run)]
    if rows:
        lines += [_bar(rows, run.num_epochs()), "", table_of(rows)]
        if rows[-1].get("epsilon_holds_if") is not None and rows[-1]["epsilon_holds"] is None:
            lines.append("This ε holds on conditions only; without them it is ∞ (privacy.json).")
    return "\n".join(lines)


def read_rows(run: RunDirectory, most: Optional[int] = None) -> List[Dict[str, Any]]:
    """Return the epochs so far, or `most` of the last, with ε as the ledger has it."""
    return with_counted_epsilons(run, run.epochs()[-(most or 0) :])


def state_of(run: RunDirectory) -> str:
    """Return that it has ended or was interrupted, or its last sign of life."""
    if run.has("results"):
        return "has ended"
    if not run.is_in_use():
        return f"was interrupted; resume it with: {run.resume_command()}"
    return last_word(run) or "is being prepared"


def last_word(run: RunDirectory) -> str:
    """Return the last sign of life of the first worker; "" if there is none yet."""
    try:
        return str(read_json(run.workers / "worker_0.json")["progress"])
    except (UserError, KeyError, TypeError):
        return ""


def table_of(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the columns that some row has."""
    shown = [c for c in COLUMNS if any(row.get(c[0]) is not None for row in rows)]
    return render_table(
        [name for _, name, _ in shown],
        [
            ["" if row.get(key) is None else said(row[key]) for key, _, said in shown]
            for row in rows
        ],
    )


def _bar(rows: Sequence[Mapping[str, Any]], epochs: int) -> str:
    done = rows[-1]["epoch"]
    filled = round(WIDTH * min(1, done / epochs))
    clock = [row.get("clock_seconds", row["seconds"]) for row in rows]  # older runs lack it
    left = sum(clock) / len(rows) * (epochs - done)
    time = f", about {duration(left)} left" if done < epochs else ""
    return f"[{'=' * filled}{' ' * (WIDTH - filled)}] {done} of {epochs} epochs{time}"
