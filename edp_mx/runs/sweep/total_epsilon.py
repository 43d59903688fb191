"""The ε of all trainings of a sweep together: every attempt, whether it ended well or not."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import List, NamedTuple, Optional, Sequence, Tuple

from edp_mx.dp.accounting.guarantee import Guarantee
from edp_mx.dp.accounting.lognumber import exp_of
from edp_mx.dp.accounting.together import count_together
from edp_mx.runs.file_types import Record
from edp_mx.runs.interrupted import has_begun
from edp_mx.runs.measurements import granted
from edp_mx.runs.record import run_id
from edp_mx.runs.recount import recount
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runs.sweep.trial import Attempts, Trial


class Total(NamedTuple):
    """The ε of so many trainings (∞ also where a double cannot hold it), its δ and conditions."""

    trainings: int
    epsilon: float
    delta: float
    conditions: Tuple[str, ...]


def total_of(trials: Sequence[Trial], folder: Path) -> Optional[Total]:
    """Return the ε of all trainings below the folder, and of others that a record alone is left of.

    All were made on one training part and looked at. Those with a ledger are composed exactly, at
    their smallest δ; to these are added the ε and δ that records of others state. None without any.

    Raises:
        UserError: a ledger that cannot be read, or trainings that protect other units.

    Edge cases: a training that left neither ledger nor record had no privacy; so counts one that
    nothing is left of.
    """
    spent: List[Guarantee] = []
    stated: List[Record] = []
    here, is_open = set(), 0
    for path in sorted(folder.glob("trial-*/")):
        run = RunDirectory(path)
        record = run.load(Record) if run.has("record") else None
        if record:
            here.add(run_id(record))
        if run.ledger.exists():
            counted = recount(run).spent
            spent += [counted] if counted.entries else []
        elif record:
            stated.append(record)
        else:
            is_open += has_begun(run)
    known = (record for trial in trials for record in trial.records)
    elsewhere = [record for record in known if run_id(record) not in here]
    stated += elsewhere
    is_open += _lost(folder, elsewhere)
    count = len(spent) + len(stated) + is_open
    if not count:
        return None
    epsilons, deltas = [math.inf] * is_open, [0.0]
    conditions: List[str] = []
    if spent:
        deltas.append(min(each.plan.delta for each in spent))
        bound = count_together(spent, delta=deltas[-1])
        epsilons.append(exp_of(bound.epsilon.log))
        conditions += bound.conditions
    for each in map(granted, stated):
        epsilons.append(exp_of(each.number.log))
        conditions += each.conditions
    deltas += [record.delta for record in stated]
    return Total(count, math.fsum(epsilons), math.fsum(deltas), tuple(dict.fromkeys(conditions)))


def _lost(folder: Path, elsewhere: Sequence[Record]) -> int:
    """The number of attempts of which neither the run is there nor a record elsewhere."""
    gone = Counter(
        name.split("-")[1] for name in Attempts(folder).names() if not (folder / name).exists()
    )
    return sum((gone - Counter(record.hash for record in elsewhere)).values())
