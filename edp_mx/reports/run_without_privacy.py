"""The run without privacy beside a run, on the same utterances."""

from __future__ import annotations

import textwrap
from typing import Any, List, Optional, Sequence, Tuple

from edp_mx.errors import UserError
from edp_mx.reports.table import WIDTH
from edp_mx.runs.file_types import Environment
from edp_mx.runs.record import record_of, validation_cost
from edp_mx.runs.run_directory import RunDirectory


def without_privacy(run: RunDirectory) -> Optional[RunDirectory]:
    """Return a finished run without privacy in the same folder, whose three parts are the same.

    The parts are compared by their keyed fingerprints, so that utterances, labels and split are the
    same. Runs of the same model family come first; of several it is the one with the best score on
    the validation part. A run without privacy has none.
    """
    parts = _parts(run)
    if parts is None or record_of(run).mechanism == "none":
        return None
    beside = (RunDirectory(path) for path in sorted(run.path.resolve().parent.iterdir()))
    family = record_of(run).family
    found: List[Tuple[bool, float, str, RunDirectory]] = []
    for other in (each for each in beside if each.path != run.path.resolve()):
        try:
            if other.has("results") and parts == _parts(other):
                record = record_of(other)
                if other.task is not run.task:
                    continue
                if record.mechanism == "none" and record.validation:
                    is_other = record.family != family
                    found.append((is_other, validation_cost(record), other.path.name, other))
        except (UserError, OSError, KeyError, TypeError):
            continue  # it is not a whole run of ours
    return min(found)[3] if found else None


def name_beside(run: RunDirectory, other: RunDirectory) -> str:
    """Return what a table calls the run without privacy beside a run."""
    family = record_of(other).family
    model = "" if family == record_of(run).family else f", another model: {family.upper()}"
    return f"without privacy ({other.path.name}{model})"


def describe_without_privacy(runs: Sequence[RunDirectory]) -> List[str]:
    """Return wrapped lines on the run without privacy beside each of some runs, each once.

    A run that is among `runs` is left out.
    """
    lines: List[str] = []
    shown = {run.path.resolve() for run in runs}
    for run in runs:
        other = without_privacy(run)
        if other is None or other.path in shown:
            continue
        shown.add(other.path)
        scores = other.task.sentence(other.scores())
        said = f"{name_beside(run, other)}: {scores}"
        lines += textwrap.wrap(said, WIDTH, subsequent_indent="  ")
    return lines


def _parts(run: RunDirectory) -> Any:
    """The fingerprints of the three parts; None where there are none."""
    return run.load(Environment).fingerprints if run.has("environment") else None
