"""Table 1 beside the paper's, from the records."""

from __future__ import annotations

import math
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence

from edp_mx.reports.footnotes import footnotes, mark_of
from edp_mx.reports.report_parts import MISSING, Cell, Part, PartTable, counted
from edp_mx.reports.summary import log10_or_infinity
from edp_mx.runs.file_types import StatedBound
from edp_mx.runs.measurements import Spread
from edp_mx.runtime.console_text import count_of
from experiments.tables.methods import METHODS
from experiments.tables.paper import TABLE_1, name_of
from experiments.tables.query import Entry, Key

HEADER = ("corpus", "method", "SER %", "MIA-AUC %", "ΔSER %", "ΔMIA %", "log₁₀ ε published",
          "log₁₀ ε that holds", "LiRA AUC %", "LiRA TPR %", "n", "runs")  # fmt: skip
EXPLANATION = (
    "In square brackets the paper's number; – is not measured yet. Of several runs, the mean over "
    "their seeds, each of which counts once, with the least and the largest run in round "
    "brackets; one that repeats another to the last digit is left out. ΔSER and ΔMIA are relative "
    "to SGD's mean on the same corpus, but – for eDP-SGD where it differs from SGD in more than "
    "its privacy, as by another pre-training. Behind ± stands by how much they differ by chance "
    "in 19 of 20 cases, from how far the seeds of a row differ, over all rows of a model on a "
    "corpus where some have several; a change within that says nothing and is grey on the page. "
    "MIA-AUC is that of the paper's attack, by a shadow model on another corpus; LiRA's AUC is "
    "the largest of its variants', and its TPR the largest share of members that one of them "
    "finds at a false-positive rate of 1 %, both a little too large where nothing leaks; its "
    "shadow models are trained by SGD, for all methods. One that is not aligned lacks the variant "
    "that allows for runs less certain than the shadow models, which finds more where there is "
    "noise. Where fewer runs were attacked than were trained, their number stands behind. An ε as "
    "published is the paper's count with its δ; the one that holds is of what really ran. A "
    "letter behind an ε leads to the condition without which it is ∞; behind ∞, to the reason."
)


OF_OTHERS = (
    "Runs like those above but for the BERT that they start from, which was pre-trained another "
    "time: they count in no row above. ΔSER is relative to their own SGD."
)


class Row(NamedTuple):
    """A row of Table 1, for `HEADER`."""

    family: str
    cells: List[Cell]
    is_empty: bool  # neither ours nor the paper's


def _row(key: Key, entry: Optional[Entry], notes: List[str]) -> Row:
    family, corpus, method = key
    papers = _of_paper(family, corpus, method)

    def share(name: str) -> Cell:
        return percent(entry, name, papers.get(name))

    def change(name: str) -> Cell:
        return _change(entry, name, papers.get(f"{name}_change"))

    cells = [
        Cell(name_of(corpus)),
        Cell(METHODS[method].name),
        *map(share, ("ser", "auc")),
        *map(change, ("ser", "auc")),
        _published(entry, papers.get("log10_epsilon"), notes),
        _holds(entry, notes),
        *map(share, ("lira_auc", "lira_tpr")),
        counted(entry.records[0].n if entry else None),
        counted(len(entry.records) if entry else None),
    ]
    return Row(family, cells, entry is None and not papers)


def _of_paper(family: str, corpus: str, method: str) -> Dict[str, float]:
    """The paper's numbers for a row."""
    row = TABLE_1.get(family, {}).get(corpus)
    chosen = METHODS[method]
    if row is None or not chosen.is_in_paper:
        return {}
    if chosen.decay is None:
        return {"ser": row.ser, "auc": row.auc}
    change = row.changes[chosen.decay]
    return {"ser_change": change.ser, "auc_change": change.auc,
            "log10_epsilon": change.log10_epsilon}  # fmt: skip


def _remark(entry: Optional[Entry], name: str) -> str:
    """How many runs a number is of, where not all were attacked, and what its LiRA lacks."""
    if entry is None or name.startswith("ser"):
        return ""
    is_lira = name.startswith("lira")
    count = entry.lira_attacked if is_lira else entry.attacked
    runs = count_of(count, "run") * (count != len(entry.records))
    return ", ".join(filter(None, (runs, "not aligned" * (is_lira and not entry.is_aligned))))


def percent(entry: Optional[Entry], name: str, paper: Optional[float] = None) -> Cell:
    """Return a share in percent with its range, and what stands behind it."""
    spread: Optional[Spread] = getattr(entry, name, None)
    if spread is None:
        return Cell(MISSING, _printed(paper))
    text = in_percent(spread, 2 if name == "ser" else 1, _remark(entry, name))
    return Cell(text, _printed(paper), 100 * spread.mean)


def in_percent(spread: Spread, digits: int, remark: str = "") -> str:
    """Return the mean in percent, with the range and a remark in brackets where there are any."""
    mean, low, high = (f"{100 * value:.{digits}f}" for value in spread)
    added = list(filter(None, (f"{low}–{high}" * (low != high), remark)))
    return mean + (f" ({', '.join(added)})" if added else "")


def _change(entry: Optional[Entry], name: str, paper: Optional[float]) -> Cell:
    """A change in percent, with a sign, and by how much it may differ by chance."""
    spread: Optional[Spread] = getattr(entry, f"{name}_change", None)
    if spread is None:
        return Cell(MISSING, _printed(paper, "+"))
    change, by_chance = 100 * spread.mean, getattr(entry, f"{name}_interval")
    text = f"{round(change, 1) + 0.0:+.1f}"
    if by_chance is None:
        return Cell(text, _printed(paper, "+"), change)
    is_chance = abs(spread.mean) <= by_chance
    return Cell(f"{text} ±{100 * by_chance:.1f}", _printed(paper, "+"), change, is_chance)


def _printed(paper: Optional[float], sign: str = "") -> str:
    """A number as the paper prints it: at least one digit behind the point."""
    if paper is None:
        return ""
    return f"{paper:{sign}.1f}" if round(paper, 1) == paper else f"{paper:{sign}g}"


def _published(entry: Optional[Entry], paper: Optional[float], notes: List[str]) -> Cell:
    """log10 of the ε as published; where it is ∞ in spite of noise, a mark gives the reason."""
    if entry is None:
        return Cell(MISSING, _printed(paper))
    bound = _largest(entry, "as_published")
    return Cell(_as_text(entry, bound, notes), _printed(paper), log10_or_infinity(bound))


def _holds(entry: Optional[Entry], notes: List[str]) -> Cell:
    """log10 of the ε that holds; where it is ∞, the conditional ε with a mark, or the reason."""
    if entry is None:
        return Cell()
    holds, granted = _largest(entry, "holds"), _largest(entry, "holds_if")
    if math.isfinite(log10_or_infinity(holds)):
        return Cell(_as_text(entry, holds, notes), "", log10_or_infinity(holds))
    text, value = _as_text(entry, granted, notes), log10_or_infinity(granted)
    if math.isfinite(value):
        text += mark_of(granted, notes)
    return Cell(text, "", value)


def _as_text(entry: Entry, bound: StatedBound, notes: List[str]) -> str:
    value = log10_or_infinity(bound)
    if math.isfinite(value):
        return f"{value:.1f}"
    return "∞" if entry.records[0].mechanism == "none" else f"∞{mark_of(bound, notes)}"


def _largest(entry: Entry, name: str) -> StatedBound:
    """The largest ε over runs."""
    return max((getattr(record, name) for record in entry.records), key=log10_or_infinity)


def table1(entries: Mapping[Key, Entry], keys: Sequence[Key], *, has_empty: bool = True) -> Part:
    """Return Table 1 as a part of a report.

    Args:
        keys: its rows, in their order.
        has_empty: show also rows for which neither we nor the paper have a number.
    """
    notes: List[str] = []
    rows = [_row(key, entries.get(key), notes) for key in keys]
    shown = [row for row in rows if has_empty or not row.is_empty]
    families = dict.fromkeys(row.family for row in shown)
    tables = [
        PartTable(each.upper(), HEADER, [row.cells for row in shown if row.family == each], 2)
        for each in families
    ]
    return Part("Table 1", [EXPLANATION], tables=tables, notes=footnotes(notes))


def of_other_starts(entries: Mapping[Key, Entry], keys: Sequence[Key]) -> List[Part]:
    """Return the part on runs from another pre-training, if there are any."""
    rows = [
        [name_of(key[1]), METHODS[key[2]].name, in_percent(entry.ser, 2),
         _change(entry, "ser", None).text, str(len(entry.records))]
        for key in keys
        if (entry := entries.get(key))
    ]  # fmt: skip
    if not rows:
        return []
    header = ("corpus", "method", "SER %", "ΔSER %", "runs")
    table = PartTable.of_texts("From another pre-training", header, rows)
    return [Part("Another pre-training", [OF_OTHERS], tables=[table])]
