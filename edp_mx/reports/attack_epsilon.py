"""Success of the attacks on several runs against the ε of the runs."""

from __future__ import annotations

from dataclasses import astuple
from pathlib import Path
from shlex import quote
from typing import Any, List, NamedTuple, Optional, Sequence

from edp_mx.attacks.membership.scores import Origin
from edp_mx.errors import UserError
from edp_mx.reports.attack_page import format_estimate
from edp_mx.reports.figures import COLOURS, build_figure, exponent_ticks, label_axes, save_figure
from edp_mx.reports.footnotes import footnotes
from edp_mx.reports.summary import format_epsilon, format_holding_epsilon
from edp_mx.reports.table import render_table
from edp_mx.runs.attack_files import ALIGNED, AttackOutcome, Estimate
from edp_mx.runs.attack_records import read_attack
from edp_mx.runs.file_types import Privacy
from edp_mx.runs.recount import privacy_of
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.files import write_csv_beside

ATTACKS = ("shadow", "threshold", "lira")
HEADLINES = ("shadow classifier", "loss", "LiRA online", ALIGNED, "LiRA offline")
MARKERS = ("o", "s", "^", "D", "v")


class AttackedRun(NamedTuple):
    """Success of one attack on one run."""

    run: str
    attack: str
    auc: Estimate
    tpr: Estimate  # at an FPR of 1 %
    judges: str  # how its members were drawn, in words
    privacy: Privacy
    notes: Sequence[str] = ()  # where that file states another ε than the ledger adds up to

    def log10_epsilon(self, key: str) -> Optional[float]:
        """Return log₁₀ of the ε `as_published` or `holds_if`; None if infinite."""
        return getattr(self.privacy, key).log10_epsilon


def points_of(runs: Sequence[RunDirectory]) -> List[AttackedRun]:
    """Read the headline results of the attacks on each run, which must have been attacked."""
    found: List[AttackedRun] = []
    for run in runs:
        folders = [run.path / f"attack-{name}" for name in ATTACKS]
        folders = [folder for folder in folders if (folder / "attack.json").exists()]
        if not folders:
            command = f"edp-mx attack {quote(str(run.path))}"
            raise UserError(f"{run.path} was not attacked yet: run `{command}`")
        notes: List[str] = []
        name, privacy = run.path.resolve().name, privacy_of(run, notes)
        attacks = [read_attack(folder) for folder in folders]
        drawn = _say_drawn([_origin_of(*pair) for pair in zip(attacks, folders)])
        for attack, judges in zip(attacks, drawn):
            found += [
                AttackedRun(name, each.name, each.auc, each.tpr, judges, privacy, notes)
                for each in attack.results
                if each.name in HEADLINES
            ]
    return found


def compare_attacks(points: Sequence[AttackedRun]) -> str:
    """Return a table with a row per run and attack, with ε as in `edp-mx compare`.

    Edge cases: where the judged members were not all drawn in the same way, footnotes say how.
    """
    notes: List[str] = []
    drawn = dict.fromkeys(point.judges for point in points)
    marks = {judges: f" [{i}]" for i, judges in enumerate(drawn, start=1)}
    is_mixed = len(marks) > 1
    rows = [
        [
            point.run,
            point.attack + marks[point.judges] * is_mixed,
            format_estimate(point.auc),
            format_estimate(point.tpr),
            format_epsilon(point.privacy.as_published),
            format_holding_epsilon(point.privacy, notes),
        ]
        for point in points
    ]
    header = ["run", "attack", "AUC %", "TPR % at FPR 1 %", "ε as published", "ε that holds"]
    others = [f"{mark.strip()} judges {judges}" for judges, mark in marks.items()] * is_mixed
    stated = dict.fromkeys(note for point in points for note in point.notes)
    return "\n".join([render_table(header, rows), *footnotes(notes), *others, *stated])


def plot_attacks(points: Sequence[AttackedRun], path: Path) -> None:
    """Write the picture to `path` and its numbers to the same path with the suffix .csv.

    Edge cases: an infinite ε is drawn at the right edge.
    """
    estimate = ("", "_low", "_high")
    header = ["run", "attack", *(f"{key}{end}" for key in ("auc", "tpr") for end in estimate)]
    header += ["log10_as_published", "log10_holds_if", "judges"]
    epsilons = {"as_published": "ε as published", "holds_if": "ε that holds if its conditions do"}
    rows = []
    for p in points:
        found = [p.run, p.attack, *astuple(p.auc), *astuple(p.tpr)]
        rows.append([*found, *map(p.log10_epsilon, epsilons), p.judges])
    write_csv_beside(path, header, rows)
    figure, panels = build_figure(9.2, 3.8, columns=2, share_y=True)
    for axes, (key, label) in zip(panels, epsilons.items()):
        _panel(axes, points, key)
        label_axes(axes, f"log₁₀ {label}", legend=False)
    label_axes(panels[0], panels[0].get_xlabel(), "AUC, %")
    save_figure(figure, path)


def _origin_of(attack: AttackOutcome, folder: Path) -> Origin:
    try:
        return Origin(**(attack.origin or {}))
    except TypeError as error:
        raise UserError(
            f"{folder / 'attack.json'} lacks the origin of its scores ({error}): "
            "attack the run again"
        ) from error


def _say_drawn(origins: Sequence[Origin]) -> List[str]:
    """Describe how the members of each attack on one run were drawn.

    The weights are named where they differ, since the run was retrained in between.
    """
    found = []
    for one in origins:
        size = f"at most {one.size} members (--size)" if one.size else "all members"
        balance = ", equally many of each intent (--balanced)" if one.is_balanced else ""
        is_retrained = any(one.weights != other.weights for other in origins)
        weights = f", by the weights {one.weights[:12]}…" if is_retrained else ""
        drawn = f"drawn with --seed {one.seed}{weights}"
        found.append(f"{size} of train against test{balance}, {drawn}")
    return found


def _panel(axes: Any, points: Sequence[AttackedRun], key: str) -> None:
    """Draw AUC with its interval against one ε."""
    finite = [log10 for p in points if (log10 := p.log10_epsilon(key)) is not None]
    ticks, names = exponent_ticks(finite, has_infinity=len(finite) < len(points))
    edge = ticks[-1]  # of ∞, where there is one
    for place, (name, colour, marker) in enumerate(zip(HEADLINES, COLOURS, MARKERS)):
        aside = 0.06 * (place - 1.5)  # so that intervals at one ε do not overlap
        chosen = [point for point in points if point.attack == name]
        if not chosen:
            continue
        log10s = [point.log10_epsilon(key) for point in chosen]
        places = [aside + (edge if log10 is None else log10) for log10 in log10s]
        values = [100 * p.auc.value for p in chosen]
        below = [100 * (p.auc.value - p.auc.low) for p in chosen]
        above = [100 * (p.auc.high - p.auc.value) for p in chosen]
        axes.errorbar(
            places, values, yerr=[below, above], fmt=marker, color=colour, capsize=3, label=name
        )
    axes.axhline(50, color="grey", linewidth=0.8)
    if len(finite) < len(points):
        axes.axvline(edge - 0.25, color="grey", linewidth=0.5, linestyle=":")
    axes.set_xticks(ticks, names)
    axes.set_xlim(ticks[0] - 0.3, max([edge, *finite]) + 0.3)
