"""The plots of the methods of Table 1: against the ε that holds, by epoch, and ROC curves."""

from __future__ import annotations

import math
from statistics import median
from typing import Any, Callable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from matplotlib.axes import Axes

from edp_mx.reports.figures import set_roc_axes
from edp_mx.runs.attack_files import AttackRecord
from edp_mx.runs.measurements import Spread, granted, spread_of
from edp_mx.runs.record import run_id
from experiments.pages.method_plots import Panel, Style
from experiments.tables.query import LIRA, PAPERS_ATTACK, Entry, Key, best_lira

Measure = Callable[[Entry], Optional[Spread]]

_STEPS = (0.5, 1, 2, 5, 10, 20, 50)  # between the ticks of log10 ε
_GAP = 1.5  # decades from the largest ε to ∞
_ATTACKS = {("shadow", PAPERS_ATTACK): "the paper's attack", ("lira", LIRA): "LiRA",
            ("threshold", "loss"): "threshold on the loss"}  # fmt: skip
_BY_EPOCH = (
    ("validation_ser", "validation SER, %", 100),
    ("loss", "training loss", 1),
    ("noise_multiplier", "noise multiplier z_t", 1),
    ("clipped_fraction", "clipped gradients, %", 100),
)


class Against(NamedTuple):
    """A measure that is drawn against ε, and its value by chance."""

    y: str
    of: Measure
    factor: float = 100.0
    chance: Optional[float] = None


SER = Against("test SER, %", lambda entry: entry.ser)
AUC = Against("AUC of the paper's attack, %", lambda entry: entry.auc, chance=50)
LIRA_AUC = Against("AUC of LiRA, %", lambda entry: entry.lira_auc, chance=50)
LIRA_TPR = Against("LiRA's TPR at 1 % FPR, %", lambda entry: entry.lira_tpr, chance=1)
SECONDS = Against("processor seconds per epoch", lambda each: processor_seconds_of(each), factor=1)


def processor_seconds_of(entry: Entry) -> Optional[Spread]:
    """Return the processor seconds of an epoch's steps, over the runs; None where unknown.

    Of the epochs of a run the median: the first is longer, and an interrupted one is not known.
    """
    columns = (found["processor_seconds"] for found in _columns(entry, "processor_seconds"))
    known = [[each for each in column if each is not None] for column in columns]
    medians = [median(column) for column in known if column]
    return spread_of(medians) if medians else None


def log10_of(entry: Entry) -> Optional[float]:
    """Return the largest log10 ε over the runs, its conditions granted; None for ∞."""
    values = [granted(record).log10_epsilon for record in entry.records]
    known = [value for value in values if value is not None]
    return max(known) if len(known) == len(values) else None


def against_epsilon(entries: Mapping[Key, Entry], measures: Sequence[Against]) -> List[Panel]:
    """Return a panel for each measure; a method without a finite ε is drawn at ∞, at the right.

    An ε that holds under conditions only is drawn as if they were granted.
    """
    values = [value for value in map(log10_of, entries.values()) if value is not None]
    largest = max([0.0, *values])
    return [_against(measure, largest) for measure in measures]


def _against(measure: Against, largest: float) -> Panel:
    def draw(axes: Axes, entry: Entry, style: Style) -> None:
        spread, value = measure.of(entry), log10_of(entry)
        assert spread is not None
        mean, low, high = (measure.factor * each for each in spread)
        x = largest + _GAP if value is None else value
        axes.errorbar(x, mean, yerr=[[mean - low], [high - mean]], capsize=3,
                      color=style.color, marker=style.marker)  # fmt: skip

    def frame(axes: Axes) -> None:
        step = next((each for each in _STEPS if 5 * each >= largest), largest / 5)
        ticks = [step * i for i in range(int(largest / step) + 1)]
        axes.set_xticks([*ticks, largest + _GAP], [*(f"{tick:g}" for tick in ticks), "∞"])
        axes.set_xlim(-0.5, largest + _GAP + 0.5)
        if measure.chance is not None:
            axes.axhline(measure.chance, color="grey", linewidth=0.8)
        lowest, highest = axes.dataLim.intervaly
        bottom = min(lowest, 45 if measure.chance == 50 else 0)
        axes.set_ylim(bottom, highest + 0.1 * (highest - bottom))

    return Panel("log₁₀ of the ε that holds", measure.y,
                 lambda entry: measure.of(entry) is not None, draw, frame)  # fmt: skip


def over_epochs() -> List[Panel]:
    """Return the panels of a training: validation SER, loss, noise, and the clipped share."""
    return [_over_epochs(*each) for each in _BY_EPOCH]


def _over_epochs(name: str, y: str, factor: float) -> Panel:
    def draw(axes: Axes, entry: Entry, style: Style) -> None:
        for columns in _columns(entry, name):
            values = [math.nan if v is None else factor * v for v in columns[name]]
            epochs = [math.nan if epoch is None else epoch for epoch in columns["epoch"]]
            axes.plot(epochs, values, color=style.color, linestyle=style.linestyle, linewidth=1.2)

    def frame(axes: Axes) -> None:
        if name == "noise_multiplier":
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0)

    return Panel("epoch", y, lambda entry: any(_columns(entry, name)), draw, frame)


def _columns(entry: Entry, name: str) -> Iterator[Mapping[str, Sequence[Optional[float]]]]:
    """The columns by epoch of each seed that has one."""
    found = (record.by_epoch or {} for record in entry.records)
    return (columns for columns in found if name in columns)


def roc_panels(attacks: Sequence[AttackRecord]) -> List[Panel]:
    """Return a panel with ROC curves for each kind of attack, both axes logarithmic."""
    curves = {}
    for each in attacks:
        lira = best_lira(each.success)
        if each.roc is None or each.chosen:  # as in the table
            continue
        for name, tpr in each.roc.tpr.items():
            key = (each.run, each.attack, LIRA if name == lira else name)
            curves[key] = (each.roc.fpr, tpr)
    return [_roc(curves, *names, said) for names, said in _ATTACKS.items()]


def _roc(curves: Mapping[Tuple[str, str, str], Any], attack: str, name: str, said: str) -> Panel:
    def of(entry: Entry) -> List[Any]:
        keys = [(run_id(record), attack, name) for record in entry.records]
        return [curves[key] for key in keys if key in curves]

    def draw(axes: Axes, entry: Entry, style: Style) -> None:
        for fpr, tpr in of(entry):
            axes.plot(fpr, [max(each, fpr[0]) for each in tpr], color=style.color,
                      linestyle=style.linestyle, linewidth=1.2)  # fmt: skip

    def frame(axes: Axes) -> None:
        set_roc_axes(axes, 1e-3)

    return Panel("false-positive rate", "true-positive rate", lambda e: bool(of(e)), draw, frame,
                 said)  # fmt: skip
