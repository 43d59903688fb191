"""One page on a finished run: scores, privacy, curves, settings, commands."""

from __future__ import annotations

from typing import List, Sequence

from edp_mx.reports.baselines import verdict
from edp_mx.reports.curves import pictures_of_curves
from edp_mx.reports.report_parts import Cell, Part, PartTable, as_html
from edp_mx.reports.run_without_privacy import without_privacy
from edp_mx.runs.file_types import Privacy, Results, StatedBound
from edp_mx.runs.recount import privacy_of
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.files import write_text
from edp_mx.runtime.yaml_tree import leaves

EPSILONS = {
    "as_published": "as the paper counts it",
    "holds": "that holds",
    "holds_if": "that holds on its conditions",
}
COMMANDS = ("explain", "account", "evaluate", "predict", "serve", "attack")


def write_run_page(run: RunDirectory, attacks: Sequence[Part] = ()) -> None:
    """Write `report.html` of a finished run; it needs no other file.

    Args:
        attacks: findings of attacks so far, from `attacks_of_run.parts_of_attacks`.
    """
    notes: List[str] = []
    privacy = privacy_of(run, notes)
    parts = [
        _scores(run, privacy),
        *_privacy(privacy, notes),
        *attacks,
        Part("Curves", pictures=pictures_of_curves(run)),
        _settings(run),
        Part("Commands", commands=_commands(run)),
    ]
    epsilon = privacy.holds.number.in_words()
    metric = run.task.metric
    score = metric.said(run.scores()[metric.key])
    summary = f"{metric.name} {score} on the test part; the ε that holds is {epsilon}."
    write_text(run.path / "report.html", as_html(run.path.resolve().name, summary, parts))


def _scores(run: RunDirectory, privacy: Privacy) -> Part:
    test, baseline, other = run.scores(), run.load(Results).baseline or {}, without_privacy(run)
    task = run.task
    shown = {"this run": test, task.describe_constant(baseline): baseline}
    if other is not None:
        shown[f"without privacy ({other.path.name})"] = other.scores()
    rows = [[name, *(each.of(of_it) for each in task.metrics)]
            for name, of_it in shown.items()]  # fmt: skip
    header = ("model", *(each.heading for each in task.metrics))
    table = PartTable.of_texts("On the test part", header, rows)
    found = verdict(test, baseline, task, mechanism=privacy.mechanism)
    return Part("Scores", texts=[" ".join(found)] if found else [], tables=[table])


def _privacy(privacy: Privacy, notes: List[str]) -> List[Part]:
    """Both ε with their reasons, conditions and limits."""
    if privacy.mechanism == "none":
        return [Part("Privacy", ["No privacy mechanism ran: ε is infinite."])]
    rows = []
    for key, name in EPSILONS.items():
        bound: StatedBound = getattr(privacy, key)
        if key == "holds_if" and bound == privacy.holds:
            continue
        if key == "as_published" and privacy.mechanism == "dp_sgd":  # the paper has none
            continue
        why = [] if bound.reason is None else [bound.reason]
        why += [f"if {condition}" for condition in bound.conditions]
        rows.append([name, bound.number.in_words(), "; ".join(why)])
    unit = f"ε of {privacy.unit} at δ = {privacy.delta:.3g}"
    header = ["ε", "value", "because, or if"]
    width = 3 if any(row[2] for row in rows) else 2
    table = PartTable.of_texts(unit, header[:width], [row[:width] for row in rows])
    parts = [Part("Privacy", tables=[table], notes=[*notes, *privacy.warnings])]
    if privacy.declarations:
        said = privacy.declarations
        parts.append(Part("What came in without noise, and who calls it public", points=said))
    if not privacy.holds_if.number.is_infinite:
        parts.append(Part("What no ε here covers", points=privacy.not_covered))
    return parts


def _settings(run: RunDirectory) -> Part:
    """The settings of the run; without a mechanism, the others of `privacy` did nothing."""
    settings = run.settings()
    if settings.get("privacy", {}).get("mechanism") == "none":
        settings = {**settings, "privacy": {"mechanism": "none"}}
    rows = [[Cell(key), Cell(str(value))] for key, value in leaves(settings) if value is not None]
    return Part("Settings", tables=[PartTable("As written out", ("key", "value"), rows)])


def _commands(run: RunDirectory) -> List[str]:
    name = run.path.resolve().name
    said = {"predict": ' "an utterance"'}
    return [f"edp-mx {command} {name}{said.get(command, '')}" for command in COMMANDS]
