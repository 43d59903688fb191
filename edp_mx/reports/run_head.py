"""The head of the pages of a run: its score, its ε, and what attacks on it found."""

from __future__ import annotations

import math
import shlex
from typing import List, Mapping, Optional, Sequence

from edp_mx.dp.accounting.lognumber import LogNumber
from edp_mx.errors import UserError
from edp_mx.reports.baselines import name_beside, without_privacy
from edp_mx.reports.explanation import MODERATE, STRONG
from edp_mx.reports.headlines import SCALE, Bar, Headline, bars_of, bars_of_aucs
from edp_mx.runs.attack_files import AttackOutcome, AttackResult
from edp_mx.runs.attack_records import read_attack
from edp_mx.runs.file_types import Privacy
from edp_mx.runs.recount import privacy_of
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.console_text import count_of
from edp_mx.tasks.task import Metric

GOOD, PRIVATE, LEAKS = "How good", "How private", "How much leaks"
_LEAST_OTHERS = 100  # with fewer, a false-positive rate of 1 % allows no false alarm


def head_of(run: RunDirectory, attacks: Optional[Sequence[AttackOutcome]] = None) -> List[Headline]:
    """Return the three numbers of a run; none before it has ended.

    Args:
        attacks: those to show; None for all that were made on the run.
    """
    if not (run.has("results") and run.has("privacy")):
        return []
    shown = attacks_on(run, []) if attacks is None else attacks
    try:
        private = how_private(privacy_of(run, []))
    except UserError as error:  # the rest is no worse for it
        private = Headline(PRIVATE, "not known", says=[f"No ε: {error}."])
    return [_how_good(run), private, _how_leaky(run, shown)]


def attacks_on(run: RunDirectory, notes: List[str]) -> List[AttackOutcome]:
    """Return the outcomes of the attacks on a run; for one that cannot be read, add a note."""
    found = []
    for path in sorted(run.path.glob("attack-*/attack.json")):
        try:
            found.append(read_attack(path.parent))
        except UserError as error:
            notes.append(f"{path.parent.name} cannot be shown: {error}.")
    return found


def verdict_of(result: AttackResult) -> str:
    """Return the meaning of an attack's success, in words."""
    right, found = 100 * result.auc.value, 100 * result.tpr.value
    said = (
        f"Somebody with the model tells members from others in {right:.0f} of 100 pairs; chance "
        f"is 50 ({result.name})."
    )
    if result.non_members < _LEAST_OTHERS:
        few = count_of(result.non_members, "other")
        return f"{said} Nobody can tell from {few} who is found at one false alarm in 100."
    return (
        f"{said} With one false alarm in 100 others, {found:.0f} of 100 members are found; chance "
        "is 1."
    )


def bars_of_scores(metric: Metric, scores: Mapping[str, float]) -> List[Bar]:
    """Return a bar for each score by its name, our own first; shares are out of 100 %."""
    whole = max([1.0 if metric.is_share else 0.0, *scores.values()]) or 1.0
    return bars_of((name, metric.said(value), value / whole) for name, value in scores.items())


def _share(epsilon: LogNumber) -> float:
    """Where it lies on a logarithmic scale from 0.1 on."""
    decades = epsilon.log10
    return 1.0 if decades is None else min(1.0, max(0.02, (decades + 1) / SCALE))


def _how_good(run: RunDirectory) -> Headline:
    test, baseline, other = run.scores(), run.results().baseline, without_privacy(run)
    metric = run.task.metric
    scores = {"this run": test[metric.key]}
    if other is not None:
        scores[name_beside(run, other)] = other.scores()[metric.key]
    if baseline:
        scores[run.task.describe_constant(baseline)] = baseline[metric.key]
    better = "less" if metric.is_error else "more"
    says = [f"On the test part; {better} is better. No ε covers this score."]
    bars = bars_of_scores(metric, scores)
    return Headline(GOOD, metric.said(test[metric.key]), metric.name, bars, says)


def how_private(privacy: Privacy) -> Headline:
    """Return the ε of a run, with the condition on which it holds."""
    bound, says = privacy.holds, []
    mark = ""
    if privacy.mechanism == "none":
        says.append("No privacy mechanism ran: nothing limits what can be found out.")
    elif bound.number.is_infinite and not privacy.holds_if.number.is_infinite:
        bound, mark = privacy.holds_if, "*"
        says.append(f"* Only if {'; and if '.join(bound.conditions)}; otherwise ∞.")
    elif bound.number.is_infinite:
        says.append(f"∞, because {bound.reason}.")
    value = bound.number.short(narrow=True) + mark
    if not bound.number.is_infinite:
        says.insert(0, f"For {privacy.unit}, at δ = {privacy.delta:.3g}; less is better.")
    shown = {f"this run{mark}": bound.number,
             "counts as strong up to": LogNumber(math.log(STRONG)),
             "counts as moderate up to": LogNumber(math.log(MODERATE))}.items()  # fmt: skip
    bars = bars_of((name, each.short(narrow=True), _share(each)) for name, each in shown)
    return Headline(PRIVATE, value, "ε", bars, says, are_decades=True)


def _how_leaky(run: RunDirectory, attacks: Sequence[AttackOutcome]) -> Headline:
    """The success of the attacks, of which the most successful is the head's number."""
    if not attacks:
        says = ["How well can somebody with the model tell who was trained on? This measures it:"]
        command = f"edp-mx attack {shlex.quote(str(run.path))}"
        return Headline(LEAKS, "not measured", says=says, command=command)
    ordered = sorted(attacks, key=lambda each: -each.results[0].auc.value)
    bars = bars_of_aucs((each.attack, each.results[0].auc.value) for each in ordered)
    first = ordered[0].results[0]
    right, low, high = (100 * getattr(first.auc, name) for name in ("value", "low", "high"))
    says = [
        f"In {right:.0f} of 100 pairs of a member and another, an attack by {first.name} tells "
        f"which is which; interval: {low:.1f} to {high:.1f} %."
    ]
    return Headline(LEAKS, f"{right:.1f} %", "AUC", bars, says)
