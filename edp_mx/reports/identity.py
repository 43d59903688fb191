"""What identifies a run and its guarantee: for its page and for its statement, a line each."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import List, Optional, Tuple

from edp_mx.config import load_config
from edp_mx.dp.accounting.guarantee import Guarantee
from edp_mx.dp.accounting.ledger_account import LedgerAccount
from edp_mx.reports.explanation import against_whom, who_is_protected
from edp_mx.reports.report_parts import Part
from edp_mx.runs.file_types import Environment, SplitIds
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.console_text import count_of
from edp_mx.runtime.files import sha256_of

Row = Tuple[str, str]
_WHY_DELTA = {
    "default": "the default, 1/(2n)",
    "value": "as the settings say",
    "paper": "the paper's",
}


def rows_on_guarantee(account: LedgerAccount) -> List[Row]:
    """Return the unit, each ε with its reason or its condition, δ, mechanism and noise."""
    spent, plan = account.spent, account.spent.plan
    size = f" of {plan.num_records}" if plan.num_records else ""
    return [
        ("unit of privacy", f"one {plan.record}{size} in the training part"),
        *_epsilons(spent),
        ("mechanism", f"{plan.mechanism}: {spent.say_release()}"),
        ("noise multiplier", _noise(spent)),
    ]


def rows_on_run(run: RunDirectory, account: Optional[LedgerAccount] = None) -> List[Row]:
    """Return the corpus, its keyed fingerprint, the date, the end of the ledger, the weights' hash.

    Without a mechanism there is no ledger, and n is the training part's.
    """
    environment = run.load(Environment) if run.has("environment") else Environment()
    kept = environment.fingerprints.get("train", {})
    fingerprint = " of the key ".join(filter(None, (kept.get("digest"), kept.get("key"))))
    data = load_config(run.config).data
    rows = [
        ("corpus", Path(data.path).resolve().name if data.path else str(data.corpus)),
        ("fingerprint of the training part", fingerprint or "not written down"),
        ("trained", environment.started or "not written down"),
    ]
    if account is not None:
        end = account.ledger.chain.end
        lines = count_of(end["lines"], "line")
        rows.append(("ledger", f"{lines}, the last with the SHA-256 {end['sha256']}"))
    elif run.has("split"):
        rows.insert(1, ("training part", count_of(len(run.load(SplitIds).train), "utterance")))
    if run.weights.exists():
        rows.append(("weights", f"{run.weights.name} with the SHA-256 {sha256_of(run.weights)}"))
    return [*rows, ("stated by", f"edp_mx {version('edp_mx')}")]


def parts_on_protection(spent: Guarantee) -> List[Part]:
    """Return who is protected, against whom, what came in without noise, what is not covered."""
    warnings = [*spent.warnings, *spent.not_covered]
    parts = [
        Part("Who is protected", [" ".join(who_is_protected(spent))]),
        Part("Against whom", [" ".join(against_whom(spent))]),
        Part("What came in without noise, and who calls it public", points=spent.declarations),
        Part("What no ε here covers", points=warnings),
    ]
    return [part for part in parts if part.texts or part.points]


def _epsilons(spent: Guarantee) -> List[Row]:
    """Return the ε that holds, on its conditions and at other δ too, and the paper's."""
    delta, holds, granted = spent.plan.delta, spent.holds, spent.holds_if
    because = f", because {'; and '.join(holds.reasons)}" if holds.reasons else ""
    rows = [("ε that holds", f"{holds.epsilon.in_words()}{because}")]
    if granted.conditions:
        said = f"{granted.epsilon.in_words()}, if {'; and if '.join(granted.conditions)}"
        rows.append(("ε on its conditions", said))
    rows.append(("δ", f"{delta:.3g}, {_WHY_DELTA[spent.plan.delta_mode]}"))
    for each in spent.at_other_deltas():
        rows.append((f"ε at δ = {each.plan.delta:.3g}", each.holds_if.epsilon.in_words()))
    if spent.plan.mechanism == "edp_sgd":  # the paper has none of another
        rows.append(("ε as the paper counts it", spent.as_published.epsilon.in_words()))
    return rows


def _noise(spent: Guarantee) -> str:
    effective = spent.effective_noise_multipliers
    if not effective:
        return "not known yet"
    return f"{effective[0]:.4g} in the first epoch, {effective[-1]:.4g} in the last"
