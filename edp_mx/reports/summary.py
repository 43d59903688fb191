"""Summary of a run, and a table that compares runs."""

from __future__ import annotations

import math
from typing import Any, Dict, List, Sequence

from edp_mx.dp.accounting.lognumber import NO_PROTECTION
from edp_mx.errors import UserError
from edp_mx.reports.baselines import (
    describe_baseline,
    describe_without_privacy,
    verdict,
    without_privacy,
)
from edp_mx.reports.footnotes import footnotes, mark_of
from edp_mx.reports.report_parts import MISSING
from edp_mx.reports.table import render_table
from edp_mx.runs.file_types import Privacy, Record, StatedBound, WithBounds
from edp_mx.runs.recount import privacy_of
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.structured import unstructure
from edp_mx.tasks.task import Task

STATED = (
    "The ε of a record whose run directory is not here is only what the record states: no ledger "
    "was counted."
)


def compare(runs: Sequence[RunDirectory]) -> str:
    """Return a table of finished runs: test scores, the first relative to the first run, both ε.

    ε is counted anew from the ledgers. Below the table stand δ, the conditions of an ε, where
    `privacy.json` states another, the run without privacy that lies beside them, the baseline of
    the test part, and which runs are no better than that.

    Raises:
        UserError: they are of different tasks.
    """
    task = _task_of_all(runs)
    rows: List[List[str]] = []
    notes: List[str] = []
    differences: List[str] = []
    first, *others = task.metrics
    base = runs[0].scores()[first.key]
    counted = [privacy_of(run, differences) for run in runs]
    alike = [run for run in runs if _are_alike(run, runs[0])]
    for run, privacy in zip(runs, counted):
        scores = run.scores()
        change = 100 * (scores[first.key] / base - 1) if base else 0.0
        rows.append(
            [
                run.path.name,
                first.of(scores),
                "" if run is runs[0] else f"{change:+.1f}" if run in alike else MISSING,
                *(each.of(scores) for each in others),
                *published_cell(privacy, counted),
                format_holding_epsilon(privacy, notes),
            ]
        )
    scored = (first.narrow_heading, f"Δ{first.short} %", *(each.narrow_heading for each in others))
    table = render_table(("run", *scored, *published_heading(counted), "ε that holds"), rows)
    lines = [table, _deltas(runs, counted, task), *footnotes(notes), *differences]
    lines += _unlike(runs, is_one_part=len(alike) == len(runs))
    lines += _without_protection(counted)
    return "\n".join([*lines, *_beside_baselines(runs)])


def run_as_json(run: RunDirectory) -> Dict[str, Any]:
    """Return a row of `compare` for strict JSON, with the whole guarantee of the run."""
    differences: List[str] = []
    other = without_privacy(run)
    return {
        "run": run.path.name,
        "test": run.scores(),
        "baseline": run.results().baseline,
        "without_privacy": other and {"run": other.path.name, "test": other.scores()},
        "privacy": unstructure(privacy_of(run, differences)),
        "differences": differences,
    }


def _task_of_all(runs: Sequence[RunDirectory]) -> Task:
    tasks = {run: run.task for run in runs}
    for run, task in tasks.items():
        if task is not tasks[runs[0]]:
            raise UserError(
                f"{run.path} has task: {task.name} and {runs[0].path} has task: "
                f"{tasks[runs[0]].name}: their scores cannot be compared"
            )
    return tasks[runs[0]]


def _unlike(runs: Sequence[RunDirectory], *, is_one_part: bool) -> List[str]:
    """Say what keeps runs from being compared as they stand."""
    lines, families = [], _each(runs, [run.written().model.family for run in runs])
    if not is_one_part:
        corpora = _each(runs, [_corpus_of(run) for run in runs])
        lines.append(
            f"The test parts differ ({corpora}): their scores do not tell which run is better."
        )
    return [*lines, f"The families differ ({families})."] if "," in families else lines


def _are_alike(run: RunDirectory, other: RunDirectory) -> bool:
    """Whether two runs are scored on the same test part, by fingerprints of the same key."""
    ours, theirs = (each.fingerprints().get("test") for each in (run, other))
    if ours and theirs and ours["key"] == theirs["key"]:
        return ours["digest"] == theirs["digest"]
    return _corpus_of(run) == _corpus_of(other)


def _corpus_of(run: RunDirectory) -> str:
    data = run.written().data
    return data.corpus if data else ""


def _each(runs: Sequence[RunDirectory], found: Sequence[str]) -> str:
    """Name what is found of all runs, once if it is the same."""
    several = ", ".join(f"{run.path.name} {value}" for run, value in zip(runs, found))
    return several if len(set(found)) > 1 else found[0]


def _deltas(runs: Sequence[RunDirectory], counted: Sequence[Privacy], task: Task) -> str:
    """Return the meaning of short names, and δ: one number, or one for each run if they differ."""
    named = [f"{each.short}: {each.name}; " for each in task.metrics if each.short != each.name]
    deltas = _each(runs, [f"{privacy.delta:.2g}" for privacy in counted])
    return f"{''.join(named)}ε at δ = {deltas}"


def _without_protection(counted: Sequence[Privacy]) -> List[str]:
    """Return a warning where the ε of a run with a mechanism protects nobody."""
    found = (privacy.holds_if.number for privacy in counted)
    if any(math.log(NO_PROTECTION) <= epsilon.log < math.inf for epsilon in found):
        return [f"An ε above {NO_PROTECTION:g} is no protection; mn: million, bn: billion"]
    return []


def _beside_baselines(runs: Sequence[RunDirectory]) -> List[str]:
    """Return the baselines of runs, equal ones once, and the verdict on each run.

    Where they differ, as of runs on several corpora, each names its runs.
    """
    constants: Dict[str, List[str]] = {}
    lines: List[str] = []
    for run in runs:
        baseline = run.results().baseline  # runs of older versions have none
        if baseline is None:
            continue
        task = run.task
        constants.setdefault(describe_baseline(baseline, task), []).append(run.path.name)
        mechanism = run.load(Privacy).mechanism
        found = verdict(run.scores(), baseline, task, mechanism=mechanism)
        lines += ["", f"{run.path.name}:", *found] if found else []
    has_one = len(constants) < 2
    said = [text if has_one else f"{', '.join(of)}: {text}" for text, of in constants.items()]
    return [*describe_without_privacy(runs), *said, *lines]


def published_heading(of: Sequence[WithBounds]) -> List[str]:
    """Return the heading of the column of ε as published, for a table with a run of eDP-SGD.

    The paper prints none of any other mechanism.
    """
    return ["ε publ."] * any(each.mechanism == "edp_sgd" for each in of)


def published_cell(of: WithBounds, others: Sequence[WithBounds]) -> List[str]:
    """Return the cell of a run in that column; none where the table has no such column."""
    text = MISSING if of.mechanism == "dp_sgd" else format_epsilon(of.as_published)
    return [text for _ in published_heading(others)]


def format_holding_epsilon(of: WithBounds, notes: List[str]) -> str:
    """Format the ε that holds, or its conditional value with the mark of a note."""
    if not of.holds.number.is_infinite or of.holds_if.number.is_infinite:
        return format_epsilon(of.holds)
    return f"{format_epsilon(of.holds_if)}{mark_of(of.holds_if, notes)}"


def stated_note(records: Sequence[Record]) -> List[str]:
    """Return the note below a table with ε of records alone; none where all were counted."""
    stated = (each for each in records if not each.is_counted)
    return [STATED] * any(each.holds_if.epsilon is not None for each in stated)


def format_epsilon(bound: StatedBound) -> str:
    return bound.number.short(narrow=True)


def log10_or_infinity(bound: StatedBound) -> float:
    return bound.number.log / math.log(10)
