"""The statement of privacy of a run: one page that can be printed and signed."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import List, Tuple

from edp_mx.config import load_config
from edp_mx.data.description import Repeats
from edp_mx.dp.accounting.guarantee import Guarantee
from edp_mx.dp.accounting.ledger_account import LedgerAccount
from edp_mx.errors import UserError
from edp_mx.reports.attacks_of_run import parts_of_attacks
from edp_mx.reports.explanation import explain_by_section
from edp_mx.reports.ledger_report import account_of
from edp_mx.reports.report_parts import Part, PartTable, as_html, as_markdown
from edp_mx.runs.file_types import Environment
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runs.trained_run import read_part
from edp_mx.runtime.files import write_text

STATEMENT = "statement"
_WHY_DELTA = {
    "default": "the default, 1/(2n)",
    "value": "as the settings say",
    "paper": "the paper's",
}
_WORDS = {"WHO IS PROTECTED": "Who is protected", "AGAINST WHOM": "Against whom"}
_SIGNATURE = "____________________________"


def write_statement(path: Path) -> Tuple[Path, Path]:
    """Write `statement.html` and `statement.md` into the directory of a run; return their paths.

    Raises:
        UserError: the run was trained without a mechanism, or its ledger does not fit its files.
    """
    run, account = RunDirectory.trained(path), account_of(path)
    sections = {title: " ".join(lines) for title, lines in explain_by_section(account)}
    spent = account.spent
    parts = [
        Part(
            "In figures", tables=[PartTable.of_texts("The run", ("", ""), _figures(run, account))]
        ),
        *(Part(name, [sections[title]]) for title, name in _WORDS.items()),
        Part("What came in without noise, and who calls it public", points=spent.declarations),
        Part("What no ε here covers", points=[*spent.warnings, *spent.not_covered]),
        *(parts_of_attacks(run) or [Part("Attacks", ["No attack has been measured."])]),
        Part("To check it", commands=[f"edp-mx explain {path}", f"edp-mx account {path}"]),
        Part("Signed", [f"Name {_SIGNATURE}", f"Date and signature {_SIGNATURE}"]),
    ]
    title = f"Statement of privacy: {run.path.resolve().name}"
    parts = [part for part in parts if any(part[1:])]
    made = {"html": as_html, "md": as_markdown}
    paths = [run.path / f"{STATEMENT}.{ending}" for ending in made]
    for file, render in zip(paths, made.values()):
        write_text(file, render(title, sections["IN SHORT"], parts))
    return paths[0], paths[1]


def _figures(run: RunDirectory, account: LedgerAccount) -> List[Tuple[str, str]]:
    """Return what can be said in a line each."""
    spent, environment = account.spent, run.load(Environment)
    plan = spent.plan
    size = f" of {plan.num_records}" if plan.num_records else ""
    kept = (environment.fingerprints or {}).get("train", {})
    end = account.ledger.chain.end
    return [
        ("unit of privacy", f"one {plan.record}{size} in the training part"),
        *_epsilons(spent),
        ("mechanism", f"{plan.mechanism}: {spent.say_release()}"),
        ("noise multiplier", _noise(spent)),
        ("corpus", str(run.settings()["data"].get("path") or run.settings()["data"]["corpus"])),
        ("fingerprint of the training part", " of the key ".join(
            filter(None, (kept.get("digest"), kept.get("key")))) or "not written down"),
        ("repeats in the training part", _repeats(run)),
        ("trained", environment.started),
        ("ledger", "{lines} lines, the last with the SHA-256 {sha256}".format(**end)),
        ("stated by", f"edp_mx {version('edp_mx')}"),
    ]  # fmt: skip


def _epsilons(spent: Guarantee) -> List[Tuple[str, str]]:
    """Return ε that holds, and what it would be on its conditions and at other δ."""
    delta, conditions = spent.plan.delta, spent.holds_if.conditions
    rows = [("ε that holds", spent.holds.epsilon.in_words())]
    if conditions:
        said = f"{spent.holds_if.epsilon.in_words()}, if {'; and if '.join(conditions)}"
        rows.append(("ε on its conditions", said))
    rows.append(("δ", f"{delta:.3g}, {_WHY_DELTA[spent.plan.delta_mode]}"))
    for each in spent.at_other_deltas():
        rows.append((f"ε at δ = {each.plan.delta:.3g}", each.holds_if.epsilon.in_words()))
    return rows


def _noise(spent: Guarantee) -> str:
    effective = spent.effective_noise_multipliers
    if not effective:
        return "not known yet"
    return f"{effective[0]:.4g} in the first epoch, {effective[-1]:.4g} in the last"


def _repeats(run: RunDirectory) -> str:
    try:
        return Repeats.of(read_part(run, load_config(run.config), "train")).describe()
    except UserError as error:
        return f"not counted: {error}"
