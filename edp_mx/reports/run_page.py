"""One page on a finished run: scores, privacy, curves, settings, commands."""

from __future__ import annotations

import shlex
from typing import List

from edp_mx.reports.baselines import name_beside, verdict, without_privacy
from edp_mx.reports.curves import pictures_of_curves
from edp_mx.reports.identity import parts_on_protection, rows_on_guarantee, rows_on_run
from edp_mx.reports.ledger_report import account_of
from edp_mx.reports.report_parts import Part, PartTable, as_html
from edp_mx.reports.run_head import head_of
from edp_mx.runs.file_types import Privacy
from edp_mx.runs.recount import privacy_of
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.files import write_text
from edp_mx.runtime.yaml_tree import leaves

COMMANDS = ("explain", "account", "statement", "evaluate", "predict", "serve", "attack")


def write_run_page(run: RunDirectory) -> None:
    """Write `report.html` of a finished run, with the attacks so far; it needs no other file."""
    notes: List[str] = []
    privacy = privacy_of(run, notes)
    parts = [
        _scores(run, privacy),
        *_privacy(run, privacy, notes),
        *_attacks(run),
        Part("Curves", pictures=pictures_of_curves(run)),
        _settings(run),
        Part("Commands", commands=commands(run, *COMMANDS)),
    ]
    epsilon = privacy.holds.number.in_words()
    metric = run.task.metric
    score = metric.said(run.scores()[metric.key])
    summary = f"{metric.name} {score} on the test part; the ε that holds is {epsilon}."
    page = as_html(run.path.resolve().name, summary, parts, head_of(run))
    write_text(run.path / "report.html", page)


def _attacks(run: RunDirectory) -> List[Part]:
    """What attacks found, if there were any: a training imports none of them."""
    if not any(run.path.glob("attack-*")):
        return []
    from edp_mx.reports.attacks_of_run import parts_of_attacks

    return parts_of_attacks(run)


def commands(run: RunDirectory, *names: str) -> List[str]:
    """Return commands on a run, with its path as it was given."""
    said = {"predict": ' "an utterance"'}
    path = shlex.quote(str(run.path))
    return [f"edp-mx {name} {path}{said.get(name, '')}" for name in names]


def _scores(run: RunDirectory, privacy: Privacy) -> Part:
    test, baseline, other = run.scores(), run.results().baseline, without_privacy(run)
    task = run.task
    shown, found = {"this run": test}, []
    if baseline:
        shown[task.describe_constant(baseline)] = baseline
        found = verdict(test, baseline, task, mechanism=privacy.mechanism)
    if other is not None:
        shown[name_beside(run, other)] = other.scores()
    rows = [[name, *(each.of(of_it) for each in task.metrics)]
            for name, of_it in shown.items()]  # fmt: skip
    header = ("model", *(each.heading for each in task.metrics))
    table = PartTable.of_texts("On the test part", header, rows)
    return Part("Scores", texts=[" ".join(found)] if found else [], tables=[table])


def _privacy(run: RunDirectory, privacy: Privacy, notes: List[str]) -> List[Part]:
    """What identifies the run, each ε with its reasons and conditions, and their limits."""
    if privacy.mechanism == "none":
        said, rows, protection = "No privacy mechanism ran: ε is infinite.", rows_on_run(run), []
    else:
        account = account_of(run.path)
        said, rows = "", [*rows_on_guarantee(account), *rows_on_run(run, account)]
        protection = parts_on_protection(account.spent)
    table = PartTable.of_facts("The run and its guarantee", rows)
    return [Part("Privacy", [said] * bool(said), tables=[table], notes=notes), *protection]


def _settings(run: RunDirectory) -> Part:
    """The settings of the run; without a mechanism, the others of `privacy` did nothing."""
    settings = run.settings()
    if settings.get("privacy", {}).get("mechanism") == "none":
        settings = {**settings, "privacy": {"mechanism": "none"}}
    rows = [(key, value) for key, value in leaves(settings) if value is not None]
    return Part("Settings", tables=[PartTable.of_facts("As written out", rows)])
