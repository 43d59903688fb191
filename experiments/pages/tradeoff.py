"""The trade-off between SER and the attacks' scores: its table, and its picture."""

from __future__ import annotations

import math
from itertools import product
from operator import itemgetter, le
from pathlib import Path
from statistics import fmean
from typing import Any, Dict, Mapping, NamedTuple, Optional, Sequence, Tuple

from matplotlib.ticker import NullFormatter

from edp_mx.reports.figures import COLOURS, build_panels, label_axes, save_figure
from edp_mx.reports.summary import log10_or_infinity
from edp_mx.reports.table import render_table
from edp_mx.runs.record import run_id
from experiments.pages.method_panels import log10_of
from experiments.pages.table1 import percent
from experiments.tables.methods import Method
from experiments.tables.paper import name_of
from experiments.tables.pooled import Pooled, pooled_of
from experiments.tables.query import Entry

HEADER = """\
# What eDP-SGD buys

Made by `python -m experiments.tradeoff {options}`; not to be edited. Made from {count}
runs of small models (`configs/small`), of {seeds} seeds at most, each on one worker with the
paper's N = 8 micro-batches, and from attacks on them. DP-SGD takes batches of 128 for 20 epochs,
from random weights or the pre-trained encoder.

SER is the semantic error rate on the test part; lower is better. AUC is that of the paper's attack,
and of the best of LiRA's variants, whose shadow models are trained by SGD; 50 is chance, and where
nothing leaks the best of several lies a little above it. TPR is the share of members that LiRA
finds at a false-positive rate of 1 %; one that is not aligned lacks the variant that allows for
runs less certain than the shadow models. Both log₁₀ ε are those of Table 1; the second would hold
if α and the vocabulary were public. Means over seeds, with the least and the largest run in
brackets; an AUC of one run is known to about ±1.7 points on ATIS and ±1 on SNIPS.
**Beaten by** names a run without privacy that has no more SER and of which no attack tells more:
noise then bought nothing that fitting less closely would not have given, unless "(by chance)" says
that all of it lies within what seeds differ by.

![SER against the AUC of attacks](../docs/pictures/tradeoff.png)
"""
ATTACKS = {"auc": "the paper's attack", "lira_auc": "LiRA"}  # by their fields in `Entry`
COLUMNS = ("", "SER %", "AUC, paper's", "AUC, LiRA", "TPR %, LiRA", "log₁₀ ε publ.",
           "log₁₀ ε holds", "runs", "beaten by")  # fmt: skip


class Curve(NamedTuple):
    """Runs that differ in one thing."""

    name: str
    points: Dict[str, Method]
    is_plain: bool = False  # trained without privacy
    only: Optional[Tuple[str, str]] = None  # corpus and family, if it has no others


class Point(NamedTuple):
    """The measurements of one method, over its seeds."""

    name: str
    curve: Curve
    entry: Entry

    def auc(self, attack: str) -> Optional[float]:
        """Return the mean AUC of an attack, by its field in `Entry`; None if it was not made."""
        spread = getattr(self.entry, attack)
        return None if spread is None else spread.mean


def beaten_by(point: Point, points: Sequence[Point]) -> str:
    """Return the best plain run, attacked alike, with no more SER, of which no attack tells more.

    Where its scores lie within what seeds differ by, "(by chance)" stands behind it.
    """
    ours = {name: auc for name in reversed(ATTACKS) if (auc := point.auc(name)) is not None}
    if point.curve.is_plain or not ours:
        return ""
    rivals = []
    for each in points:
        aucs = [auc for name in ours if (auc := each.auc(name)) is not None]
        is_whole = len(aucs) == len(ours) and each.entry.is_aligned == point.entry.is_aligned
        if each.curve.is_plain and each.entry.ser.mean <= point.entry.ser.mean and is_whole:
            rivals.append((aucs, f"{each.curve.name}, {each.name}", each))
    if not rivals:
        return ""
    fitting = [rival for rival in rivals if all(map(le, rival[0], ours.values()))]
    if not fitting:
        return "none"
    _, name, best = min(fitting, key=itemgetter(0, 1))
    pooled = pooled_of([each.entry.by_seed for each in points])
    compared = [key for key in ("ser", *ATTACKS) if key in pooled]
    by_chance = [_is_chance(point.entry, best.entry, key, pooled[key]) for key in compared]
    return f"{name}{' (by chance)' * (bool(by_chance) and all(by_chance))}"


def _is_chance(one: Entry, other: Entry, key: str, pooled: Pooled) -> bool:
    """Whether two measurements differ by less than seeds do; also where one was not made."""
    ours, theirs = (each.by_seed.get(key, ()) for each in (one, other))
    if not ours or not theirs:
        return True
    ratio = fmean(ours) / fmean(theirs)
    return abs(ratio - 1) <= pooled.interval(ratio, len(ours), len(theirs))


def table_of(points: Sequence[Point]) -> str:
    rows = []
    for point in points:
        entry = point.entry
        published = max(log10_or_infinity(each.as_published) for each in entry.records)
        holds = log10_of(entry)
        rows.append([
            f"{point.curve.name}: {point.name}",
            *(str(percent(entry, name)) for name in ("ser", "auc", "lira_auc", "lira_tpr")),
            f"{published:.1f}" if math.isfinite(published) else "∞",
            "∞" if holds is None else f"{holds:.1f}",
            str(len(entry.records)),
            beaten_by(point, points),
        ])  # fmt: skip
    return render_table(COLUMNS, rows)


def draw(found: Mapping[Tuple[str, str], Sequence[Point]], picture: Path) -> None:
    """Draw SER against the AUC of each attack, a panel for each corpus, family and attack.

    Edge cases: draws nothing where no attack was made on three runs.
    """
    shown = {}
    for (place, points), (field, attack) in product(found.items(), ATTACKS.items()):
        aucs = [(each, each.auc(field)) for each in points if not each.curve.only]
        measured = [(each, 100 * auc) for each, auc in aucs if auc is not None]
        if len(measured) > 2:
            shown[place, attack] = measured
    if not shown:
        return
    figure, panels = build_panels(len(shown), 5.2, 4.2, columns=2, least_columns=2, below=0.9)
    drawn: Dict[str, Any] = {}
    names = list(dict.fromkeys(each.curve.name for its in shown.values() for each, _ in its))
    for axes, (((corpus, family), attack), its) in zip(panels, shown.items()):
        for name in dict.fromkeys(each.curve.name for each, _ in its):
            of_it = [(each, auc) for each, auc in its if each.curve.name == name]
            is_plain = of_it[0][0].curve.is_plain
            (drawn[name],) = axes.plot(
                [100 * each.entry.ser.mean for each, _ in of_it],
                [auc for _, auc in of_it],
                color="#000000" if name == "SGD" else COLOURS[names.index(name) - 1],
                marker="s" if is_plain else "o", linestyle=":" if is_plain else "-",
                markersize=9 if name == "SGD" else 5, linewidth=1.2,
            )  # fmt: skip
        axes.set_xscale("log")
        ticks = [5, 10, 20, 40, 80]
        axes.set_xticks(ticks, list(map(str, ticks)))
        axes.xaxis.set_minor_formatter(NullFormatter())
        title = f"{name_of(corpus)}, {family.upper()}, {attack}"
        label_axes(axes, "SER on the test part, %", "AUC, %", legend=False, title=title)
    figure.legend(drawn.values(), drawn, loc="outside lower center", ncols=4, frameon=False,
                  fontsize=8)  # fmt: skip
    save_figure(figure, picture)


def page(
    found: Mapping[Tuple[str, str], Sequence[Point]], lacking: Sequence[str], options: str
) -> str:
    """Return the Markdown of the measured points, and of the missing ones."""
    entries = [point.entry for its in found.values() for point in its]
    count = len({run_id(record) for entry in entries for record in entry.records})
    seeds = max((len(entry.by_seed["ser"]) for entry in entries), default=0)
    blocks = [HEADER.format(options=options, count=count, seeds=seeds)]
    for (corpus, family), its in found.items():
        blocks += [f"## {name_of(corpus)}, {family.upper()}\n", table_of(its), ""]
    if lacking:
        blocks += ["## Missing\n", *(f"- {line}" for line in lacking)]
    return "\n".join(blocks).rstrip() + "\n"
