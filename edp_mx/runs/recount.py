"""The ε spent by a run, counted anew from its ledger for each command that prints it."""

from __future__ import annotations

import hashlib
import math
import time
from functools import lru_cache
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np
import scipy

from edp_mx.dp import accounting
from edp_mx.dp.accounting.budget import committed_entries
from edp_mx.dp.accounting.entries import Entry
from edp_mx.dp.accounting.guarantee import Guarantee, guarantee
from edp_mx.dp.accounting.ledger import Ledger, read_ledger
from edp_mx.dp.accounting.ledger_account import LedgerAccount, account_for
from edp_mx.dp.accounting.lognumber import LogNumber
from edp_mx.dp.accounting.plan import Plan
from edp_mx.errors import UserError
from edp_mx.runs.file_types import Privacy, SplitIds, StatedBound
from edp_mx.runs.ledger_evidence import END, Evidence
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.console_text import count_of
from edp_mx.runtime.disk_cache import remembered
from edp_mx.runtime.files import sha256_of
from edp_mx.runtime.structured import structure

SECONDS = 3.0  # of processor time that a table of epochs may take for ε that were not counted yet
EPSILONS = {f"epsilon_{name}": name for name in ("as_published", "holds", "holds_if")}
_CLOSE = 0.01  # relative; accountants of other versions may be a little tighter
_STATED = {"as_published": "as published", "holds": "that holds"}


def recount(run: RunDirectory, *, delta: Optional[float] = None) -> LedgerAccount:
    """Return the total of the ledger of a run, at its own δ or at another.

    Raises:
        UserError: the ledger cannot be read, lacks what other files say was released, or counts
            another number of records than the run has.
    """
    evidence = Evidence.of(run)
    evidence.refuse_absent()
    account = account_for(run.ledger, delta=delta)
    _refuse_contradictions(evidence, account.ledger)
    return account


def privacy_of(run: RunDirectory, notes: List[str]) -> Privacy:
    """Return the content of `privacy.json` as the ledger has it.

    Args:
        notes: gets a sentence for each ε that the file states otherwise.

    Raises:
        UserError: a run with a mechanism has no ledger, or none that can be believed.
    """
    evidence, stated = Evidence.of(run), run.load(Privacy)
    if not run.ledger.exists() and stated.mechanism == "none" and stated.holds.epsilon is None:
        return stated
    evidence.refuse_absent()
    ledger = read_ledger(run.ledger)
    _refuse_contradictions(evidence, ledger)
    counted = _spent(run)
    for key, (was, now) in _compared(run, counted).items():
        if was != now and not math.isclose(was.log, now.log, abs_tol=_CLOSE):
            notes.append(
                f"{run.path / 'privacy.json'} states ε = {was} {_STATED[key]}, but the ledger "
                f"adds up to {now}, which is shown"
            )
    return structure({**counted, END: ledger.chain.end}, Privacy)


def with_counted_epsilons(
    run: RunDirectory, rows: Sequence[Mapping[str, Any]]
) -> List[Dict[str, Any]]:
    """Return lines of `metrics.jsonl` with the ε that the ledger had added up to by then.

    The last ones are counted first; after `SECONDS` the ε of those before them is left out, until
    another call has the time.
    """
    if not any(EPSILONS & row.keys() for row in rows):
        return [dict(row) for row in rows]
    evidence, until = Evidence.of(run), time.process_time() + SECONDS
    found: List[Dict[str, Any]] = []
    evidence.refuse_absent()
    ledger = read_ledger(run.ledger)
    _refuse_contradictions(evidence, ledger)
    for row in reversed(rows):
        told = {key: value for key, value in row.items() if key not in EPSILONS}
        if len(told) < len(row) and (not found or time.process_time() < until):
            told.update(_after(ledger, row["epoch"]))
        found.append(told)
    return found[::-1]


def epsilons_of(spent: Guarantee) -> Dict[str, Optional[float]]:
    """Return the ε of a guarantee as columns of `metrics.jsonl`; None where no double holds it."""
    return {key: getattr(spent, name).epsilon.value for key, name in EPSILONS.items()}


def guarantee_ahead(
    plan: Plan,
    spent: Sequence[Entry] = (),
    *,
    first_epoch: Optional[int] = None,
    first_step: int = 0,
) -> Guarantee:
    """Return the guarantee of all releases so far and of all that a run may still make.

    Its budget ends it, if there is one. The arguments are those of `committed_entries`.
    """
    if plan.release is None:
        return guarantee(plan)
    entries = committed_entries(plan, spent, first_epoch=first_epoch, first_step=first_step)
    return guarantee(plan, entries)


def _spent(run: RunDirectory) -> Dict[str, Any]:
    """All that the ledger adds up to, counted once for each state of the file."""
    what = ["ledger", sha256_of(run.ledger)]
    return _remembered(what, lambda: account_for(run.ledger).spent.to_dict())


def _after(ledger: Ledger, epoch: int) -> Dict[str, Any]:
    """The ε of all releases up to the last end of an epoch, counted from 1."""
    places = [i for i, entry in enumerate(ledger.entries, start=1) if entry.epoch == epoch - 1]
    entries = ledger.entries[: max(places, default=len(ledger.entries))]
    plan, is_stopped = ledger.plan, ledger.is_stopped
    what = [plan.to_dict(), is_stopped, [entry.to_dict() for entry in entries]]
    return _remembered(
        ["epoch", what], lambda: epsilons_of(guarantee(plan, entries, is_stopped=is_stopped))
    )


def _remembered(what: Any, count: Callable[[], Dict[str, Any]]) -> Dict[str, Any]:
    """Another version of the accounting, of NumPy or of SciPy counts anew."""
    decisive = [what, _code(), np.__version__, scipy.__version__]
    return remembered("epsilons", decisive, dict, count)


@lru_cache(maxsize=None)
def _code() -> str:
    """A hash of the code that counts."""
    digest = hashlib.sha256()
    for path in sorted(Path(accounting.__path__[0]).rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _refuse_contradictions(evidence: Evidence, ledger: Ledger) -> None:
    """Refuse a ledger that contradicts the other files of the run."""
    run = evidence.run
    evidence.refuse_cut(ledger)
    if run.has("split"):
        _refuse_other_number(run, ledger.plan)
    if run.has("privacy") and not evidence.confirms(ledger):
        for key, (was, now) in _compared(run, _spent(run)).items():
            if was.log > now.log + _CLOSE:
                raise UserError(
                    f"{run.path / 'privacy.json'} states ε = {was} {_STATED[key]}, but "
                    f"{run.ledger.name} adds up to {now} only: lines are missing at its end, and "
                    "no ε can be read from it; restore the ledger, or leave the run out"
                )


def _compared(run: RunDirectory, counted: Dict[str, Any]) -> Dict[str, Tuple[LogNumber, LogNumber]]:
    """Both ε, as `privacy.json` states them and as they were counted."""
    stated = run.load(Privacy)
    return {
        key: (getattr(stated, key).number, structure(counted[key], StatedBound).number)
        for key in _STATED
    }


def _refuse_other_number(run: RunDirectory, plan: Plan) -> None:
    """Compare n with the training part; of users there may be fewer than utterances."""
    path = run.path / "split.json"
    held, counted = _number_trained(run.path, path.stat().st_mtime_ns), plan.num_records
    is_of_users = plan.release is not None and plan.release.clips.is_user
    if counted is None or counted == held or (is_of_users and counted < held):
        return
    raise UserError(
        f"{run.ledger} counts {count_of(counted, plan.record)}, but split.json has "
        f"{count_of(held, 'utterance')} in the training part: one of the two was changed, and no "
        "ε can be read from them"
    )


@lru_cache(maxsize=1024)
def _number_trained(path: Path, _: int) -> int:
    return len(RunDirectory(path).load(SplitIds).train)
