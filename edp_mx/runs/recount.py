"""The privacy of a finished run, counted anew from its ledger."""

from __future__ import annotations

import math
from typing import Any, Dict, List, Optional

from edp_mx.accounting.ledger_account import LedgerAccount, account_for
from edp_mx.accounting.lognumber import LogNumber
from edp_mx.accounting.plan import Plan
from edp_mx.errors import UserError
from edp_mx.runs.run_directory import RunDirectory

_CLOSE = 0.01  # relative; accountants of other versions may be a little tighter


def recount(run: RunDirectory, *, delta: Optional[float] = None) -> LedgerAccount:
    """Return what the ledger of a run adds up to, at its own δ or at another.

    Raises:
        UserError: the ledger cannot be read, or counts another number of records than the run has.
    """
    account = account_for(run.ledger, delta=delta)
    if run.has("split"):
        _refuse_other_number(run, account.plan)
    return account


def privacy_of(run: RunDirectory, notes: List[str]) -> Dict[str, Any]:
    """Return the content of `privacy.json` as the ledger has it.

    Args:
        notes: gets a sentence for each ε that the file states otherwise.

    Raises:
        UserError: a run with a mechanism has no ledger, or none that can be believed.
    """
    stated = run.read("privacy")
    if not run.ledger.exists():
        if stated.get("mechanism") == "none" and stated["holds"]["epsilon"] is None:
            return stated
        raise UserError(
            f"{run.ledger} is missing, and without it nobody knows what the run has spent; "
            "restore it, or leave the run out"
        )
    counted = recount(run).spent.to_dict()
    for key, name in (("as_published", "as published"), ("holds", "that holds")):
        try:
            was = LogNumber.from_dict(stated[key])
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(f"{run.path / 'privacy.json'} is damaged ({error!r})") from error
        now = LogNumber.from_dict(counted[key])
        if was != now and not math.isclose(was.log, now.log, abs_tol=_CLOSE):
            notes.append(
                f"{run.path / 'privacy.json'} states ε = {was} {name}, but the ledger "
                f"adds up to {now}, which is shown"
            )
    return counted


def _refuse_other_number(run: RunDirectory, plan: Plan) -> None:
    """Compare n with the training part; of users there may be fewer than utterances."""
    held, counted = len(run.read("split")["train"]), plan.num_records
    if counted is None or counted == held or (plan.record == "user" and counted < held):
        return
    raise UserError(
        f"{run.ledger} counts {counted} {plan.record}s, but split.json has {held} utterances in "
        "the training part: one of the two was changed, and no ε can be read from them"
    )
