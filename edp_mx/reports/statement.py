"""The statement of privacy of a run: one page that can be printed and signed."""

from __future__ import annotations

from pathlib import Path
from typing import List, Tuple

from edp_mx.config import load_config
from edp_mx.data.description import describe
from edp_mx.errors import UserError
from edp_mx.reports.attacks_of_run import parts_of_attacks
from edp_mx.reports.explanation import explain_by_section
from edp_mx.reports.identity import parts_on_protection, rows_on_guarantee, rows_on_run
from edp_mx.reports.ledger_report import account_of
from edp_mx.reports.report_parts import Part, PartTable, as_html, as_markdown
from edp_mx.reports.run_head import head_of
from edp_mx.reports.run_page import commands
from edp_mx.runs.recount import privacy_of
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runs.trained_run import read_part
from edp_mx.runtime.files import write_text

STATEMENT = "statement"
_SIGNATURE = "____________________________"


def write_statement(path: Path) -> Tuple[Path, Path]:
    """Write `statement.html` and `statement.md` into the directory of a run; return their paths.

    Raises:
        UserError: the run was trained without a mechanism, or its ledger does not fit its files.
    """
    run, account = RunDirectory.trained(path), account_of(path)
    notes: List[str] = []
    verdict = dict(explain_by_section(account))["IN SHORT"]
    on_run = rows_on_run(run, account)
    on_run.insert(2, ("repeats in the training part", _repeats(run)))
    figures = [*rows_on_guarantee(account), *on_run]
    parts = [
        Part("In figures", tables=[PartTable.of_facts("The run", figures)]),
        *parts_on_protection(account.spent),
        *parts_of_attacks(run),
        Part("To check it", commands=commands(run, "explain", "account")),
        Part("Signed", [f"Name {_SIGNATURE} date and signature {_SIGNATURE}"]),
    ]
    title = f"Statement of privacy: {run.path.resolve().name}"
    privacy_of(run, notes)
    made = {"html": as_html, "md": as_markdown}
    paths = [run.path / f"{STATEMENT}.{ending}" for ending in made]
    for file, render in zip(paths, made.values()):
        write_text(file, render(title, " ".join([*verdict, *notes]), parts, head_of(run)))
    return paths[0], paths[1]


def _repeats(run: RunDirectory) -> str:
    try:
        return describe(read_part(run, load_config(run.config), "train")).repeats.describe()
    except UserError as error:
        return f"not counted: {error}"
