"""The head of a page of runs: what privacy costs, how many runs have it, and what leaks."""

from __future__ import annotations

from collections import Counter, defaultdict
from statistics import median
from typing import Dict, Iterable, List, Sequence, Tuple

from edp_mx.reports.explanation import MODERATE, STRONG
from edp_mx.reports.headlines import Headline, bars_of, bars_of_aucs
from edp_mx.reports.run_head import GOOD, LEAKS, PRIVATE, bars_of_scores
from edp_mx.runs.attack_files import WORDS_ALONE, AttackRecord
from edp_mx.runs.file_types import Record
from edp_mx.runs.measurements import epsilon_of
from edp_mx.runs.record import run_id, validation_cost
from edp_mx.runtime.console_text import count_of

# By their names in records, the strongest first; no two of them can be compared.
ATTACKS = {"lira": "LiRA", "shadow": "the paper's attack", "threshold": "a threshold on outputs"}
PRICED, FREE = f"at ε up to {MODERATE:g}", "without privacy"


def head_of_records(records: Sequence[Record], attacks: Sequence[AttackRecord]) -> List[Headline]:
    """Return the three numbers; an ε on conditions counts as if these were granted."""
    return [_how_good(records), _how_private(records), _how_leaky(records, attacks)]


def _how_good(records: Sequence[Record]) -> Headline:
    """The score with and without privacy, the median over corpora that have both."""
    (name, _), *_ = Counter(record.task.name for record in records).most_common()
    its = [record for record in records if record.task.name == name]
    task = its[0].task
    metric, pairs = task.metric, list(_pairs(its))
    better = f"{'Less' if metric.is_error else 'More'} is better; no ε covers these scores."
    if not pairs:
        best = min(its, key=validation_cost)
        value = best.test[metric.key]
        said = f"No corpus has both a run {PRICED} and one {FREE}; this is the best on validation."
        bars = bars_of_scores(metric, {best.name: value})
    else:
        scores = {
            side: median(each.test[metric.key] for each in its)
            for side, its in zip((PRICED, FREE), zip(*pairs))
        }
        value, bars = scores[PRICED], bars_of_scores(metric, scores)
        many = f"{len(pairs)} corpora" if len(pairs) > 1 else "one corpus"
        said = f"Of each corpus the run that is best on validation; the median of {many}."
    return Headline(GOOD, metric.said(value), metric.name, bars, [said, better])


def _pairs(records: Sequence[Record]) -> Iterable[Tuple[Record, Record]]:
    """The best run with and without privacy of each corpus, at the largest n that has both."""
    found: Dict[str, Dict[int, Dict[str, List[Record]]]] = defaultdict(lambda: defaultdict(dict))
    for record in records:
        side = _side(record)
        if side:
            found[record.corpus][record.n].setdefault(side, []).append(record)
    for sizes in found.values():
        both = [n for n, sides in sizes.items() if len(sides) == 2]
        if both:
            sides = sizes[max(both)]
            priced, free = (min(sides[side], key=validation_cost) for side in (PRICED, FREE))
            yield priced, free


def _side(record: Record) -> str:
    if record.mechanism == "none":
        return FREE
    return PRICED if epsilon_of(record) <= MODERATE else ""


def _how_private(records: Sequence[Record]) -> Headline:
    epsilons = [epsilon_of(record) for record in records if record.mechanism != "none"]
    counts = {
        PRICED: sum(each <= MODERATE for each in epsilons),
        f"of these up to {STRONG:g}": sum(each <= STRONG for each in epsilons),
        "above, or ∞": sum(each > MODERATE for each in epsilons),
        FREE: len(records) - len(epsilons),
    }
    bars = bars_of((name, f"{count:,}", count / len(records)) for name, count in counts.items())
    says = ["Each at its own δ; an ε that holds on conditions counts as if they were granted."]
    return Headline(
        PRIVATE, f"{counts[PRICED]:,}", f"of {count_of(len(records), 'run')}", bars, says
    )


def _how_leaky(records: Sequence[Record], attacks: Sequence[AttackRecord]) -> Headline:
    """The AUC of one attack, the median over the runs with and without privacy that have it."""
    sides = {run_id(record): _side(record) for record in records}
    aucs: Dict[str, Dict[str, List[float]]] = {name: defaultdict(list) for name in ATTACKS}
    for each in attacks:
        values = [found.auc.value for name, found in each.success.items() if name != WORDS_ALONE]
        if values and each.attack in aucs and sides.get(each.run):
            aucs[each.attack][sides[each.run]].append(max(values))
    name = max(aucs, key=lambda each: len(aucs[each]))  # the first that both sides have
    shown = [(side, aucs[name][side]) for side in (PRICED, FREE) if aucs[name][side]]
    if not shown:
        says = ["How well can somebody with a model tell who was trained on? This measures it:"]
        return Headline(LEAKS, "not measured", says=says, command="edp-mx attack RUN")
    bars = bars_of_aucs((side, median(values)) for side, values in shown)
    said = " and ".join(f"{count_of(len(values), 'run')} {side}" for side, values in shown)
    says = [f"By {ATTACKS[name]}, the variant with the largest AUC; the median of {said}."]
    return Headline(LEAKS, bars[0].text, "AUC", bars, says)
