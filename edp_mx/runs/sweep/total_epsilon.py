"""The ε of all trainings of a sweep together: every attempt, whether it ended well or not."""

from __future__ import annotations

import math
from pathlib import Path
from typing import List, NamedTuple, Sequence

from edp_mx.dp.accounting.lognumber import exp_of
from edp_mx.runs.file_types import Record
from edp_mx.runs.interrupted import has_begun
from edp_mx.runs.record import run_id
from edp_mx.runs.recount import recount
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runs.sweep.trial import Trial


class Spent(NamedTuple):
    """An ε that holds (∞ also where a double cannot hold it), and its δ."""

    epsilon: float
    delta: float


def spent_by(trials: Sequence[Trial], folder: Path) -> List[Spent]:
    """Return the ε of each training: all below the folder, and others known by a record only.

    All were made on one training part and looked at, so that their ε add up, and their δ.

    Raises:
        UserError: a ledger that cannot be read.

    Edge cases: a training that left neither ledger nor record had no privacy.
    """
    found, here = [], set()
    for path in sorted(folder.glob("trial-*/")):
        run = RunDirectory(path)
        record = run.load(Record) if run.has("record") else None
        if record:
            here.add(run_id(record))
        if run.ledger.exists():
            spent = recount(run).spent
            if spent.entries:
                found.append(Spent(exp_of(spent.holds.epsilon.log), spent.plan.delta))
        elif record:
            found.append(_stated(record))
        elif has_begun(run):
            found.append(Spent(math.inf, 0.0))
    known = (record for trial in trials for record in trial.records)
    return found + [_stated(record) for record in known if run_id(record) not in here]


def _stated(record: Record) -> Spent:
    return Spent(exp_of(record.holds.number.log), record.delta)
