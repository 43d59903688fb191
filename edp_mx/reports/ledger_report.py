"""Report on the ledger of a run, as text and as JSON."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence

from edp_mx.dp.accounting.entries import Entry, merged
from edp_mx.dp.accounting.guarantee import WELL_BELOW, Guarantee
from edp_mx.dp.accounting.ledger_account import LedgerAccount, account_for, ranges
from edp_mx.errors import UserError
from edp_mx.reports.plan_report import counts_as_json, render_accountants
from edp_mx.reports.table import render_table
from edp_mx.runs.file_types import Privacy
from edp_mx.runs.recount import recount
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.console_text import count_of

LONGEST_LIST = 12  # lines of releases; the middle of longer lists is left out


def ledger_path(path: Path) -> Path:
    """Return the ledger of a run directory, or the file itself."""
    if not path.exists():
        raise UserError(f"{path} does not exist; give the run directory that `edp-mx train` wrote")
    if not path.is_dir():
        return path
    run = RunDirectory(path)
    if run.ledger.exists():
        return run.ledger
    if is_without_privacy(path):
        raise UserError(
            f"{path} was trained without a privacy mechanism: it has no ledger, and epsilon is "
            "infinite"
        )
    if run.has("privacy"):
        raise UserError(
            f"{path} has lost its {run.ledger.name}, without which no epsilon can be stated: bring "
            "the file back from a copy, or treat the model as one that was trained without privacy"
        )
    raise UserError(
        f"{path} holds no {run.ledger.name}: it is not a run directory, or nothing was released yet"
    )


def account_of(path: Path, *, delta: Optional[float] = None) -> LedgerAccount:
    """Return the total of the ledger in a run directory, or of the file itself.

    A file in its run directory is compared with the other files there.
    """
    ledger = ledger_path(path)
    run = RunDirectory(ledger.parent)
    if ledger.name == run.ledger.name:
        return recount(run, delta=delta)
    return account_for(ledger, delta=delta)


def is_without_privacy(path: Path) -> bool:
    """Return whether a run was trained without a mechanism."""
    run = RunDirectory(path)
    if run.ledger.exists() or not run.has("privacy"):
        return False
    return run.load(Privacy).mechanism == "none"


def ledger_as_json(account: LedgerAccount) -> Dict[str, Any]:
    """Return a value for strict JSON: `privacy.json` from the ledger alone, and its entries."""
    ledger, spent = account.ledger, account.spent
    return {
        **spent.to_dict(),
        "at_other_deltas": at_other_deltas_as_json(spent),
        "accountants": {key: counts_as_json(counts) for key, counts in spent.by_accountant.items()},
        "planned": account.planned.bounds_as_json(),
        "ledger": {
            "entries": [entry.to_dict() for entry in merged(ledger.entries)],
            "is_torn": ledger.is_torn,
            "differences": list(account.differences),
        },
    }


def ledger_as_lines(account: LedgerAccount, path: Path) -> List[str]:
    """Return text lines: the releases, their ε by all accountants, and deviations from the plan."""
    spent = account.spent
    lines = [f"{path}", "", *_releases(account.ledger.entries), "", *spent.describe().splitlines()]
    others = say_at_other_deltas(spent)
    lines += [f"  at other deltas       {others}"] if others else []
    lines += ["", *render_accountants(spent.as_published, spent.by_accountant)]
    if spent.holds_if.conditions:
        lines.append(f"holds if: {'; and if '.join(spent.holds_if.conditions)}")
    return [*lines, "", *_plan_lines(account)]


def at_other_deltas_as_json(spent: Guarantee) -> List[Dict[str, Any]]:
    """Return a value for strict JSON: ε at further δ, `Guarantee.at_other_deltas`."""
    names = ("holds", "holds_if")
    return [
        {"delta": each.plan.delta, **{name: getattr(each, name).to_dict() for name in names}}
        for each in spent.at_other_deltas()
    ]


def say_at_other_deltas(spent: Guarantee) -> str:
    """Return the same in words, its conditions granted; "" where there is none."""
    found = []
    for each in spent.at_other_deltas():
        n, delta = each.plan.num_records, each.plan.delta
        name = " = 1/(10n)" if n and delta == WELL_BELOW / n else ""
        found.append(f"{each.holds_if.epsilon.in_words()} at {delta:.3g}{name}")
    return "; ".join(found)


def _plan_lines(account: LedgerAccount) -> List[str]:
    """Describe how the ledger and its plan differ, and the ε of the plan."""
    planned = account.planned
    if not account.differences:
        return [f"The ledger agrees with the plan: {count_of(planned.plan.epochs, 'epoch')}."]
    return [
        "The ledger differs from the plan:",
        *(f"  - {text}" for text in account.differences),
        f"The whole plan: epsilon as published {planned.as_published.epsilon}, that holds "
        f"{planned.holds_if.epsilon}"
        + (" (under its conditions)" if planned.holds_if.conditions else "")
        + ".",
        "A run that was stopped because of its results has spent the ε of its plan, if it is more.",
    ]


def _releases(entries: Sequence[Entry]) -> List[str]:
    """Return a line per stretch of equal releases."""
    rows = []
    for group in _stretches(entries):
        first, event = group[0], group[0].event
        epochs = sorted({entry.epoch for entry in group if entry.epoch is not None})
        rows.append(
            [
                first.title if len(epochs) < 2 else f"epochs {ranges(epochs)}",
                str(sum(entry.event.count for entry in group)),
                "" if first.noise_multiplier is None else f"{first.noise_multiplier:.6g}",
                f"{event.effective_noise_multiplier:.6g}",
                f"{event.sample_rate:.6g}" if event.draws.by_chance else "",
            ]
        )
    if len(rows) > LONGEST_LIST:
        half = LONGEST_LIST // 2
        left_out = [f"... {len(rows) - LONGEST_LIST} more", "", "", "", ""]
        rows = [*rows[:half], left_out, *rows[-half:]]
    if not rows:
        return ["The ledger holds no release yet."]
    by_step = any(entry.event.draws.by_chance for entry in entries)
    unit = "steps" if by_step else "times"
    header = ["released", unit, "z", "effective z", "sample rate"]
    width = len(header) if by_step else len(header) - 1
    return render_table(header[:width], [row[:width] for row in rows]).splitlines()


def _stretches(entries: Sequence[Entry]) -> List[List[Entry]]:
    """Group neighbouring entries that differ in epoch and count only."""
    groups: List[List[Entry]] = []
    for entry in entries:
        if groups and _is_alike(groups[-1][-1], entry):
            groups[-1].append(entry)
        else:
            groups.append([entry])
    return groups


def _is_alike(one: Entry, other: Entry) -> bool:
    epochs = one.epoch, other.epoch
    if None in epochs or epochs[1] not in (epochs[0], (epochs[0] or 0) + 1):
        return False
    event = replace(other.event, count=one.event.count)
    return (one.noise_multiplier, one.event) == (other.noise_multiplier, event)
