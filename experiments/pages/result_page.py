"""The page of all results: both tables, SER against ε, the runs, where the numbers come from."""

from __future__ import annotations

from itertools import product
from typing import List, Mapping, Sequence, Tuple

from edp_mx.reports.records_page import drawn, ends_with, ser_by_epsilon
from edp_mx.reports.report_parts import MISSING, Part, PartTable
from edp_mx.runs.attack_files import AttackRecord
from edp_mx.runs.file_types import Record
from edp_mx.runs.measurements import spread_of
from experiments.pages.grid_choice import choice_of_settings
from experiments.pages.method_panels import (
    AUC,
    LIRA_AUC,
    LIRA_TPR,
    SECONDS,
    SER,
    against_epsilon,
    log10_of,
    over_epochs,
    processor_seconds_of,
    roc_panels,
)
from experiments.pages.method_plots import pictures_by_place
from experiments.pages.step_costs import Performance, step_costs
from experiments.pages.table1 import table1
from experiments.pages.table1_about import about
from experiments.pages.table2 import table2
from experiments.tables.methods import CORPORA, FAMILIES, METHODS
from experiments.tables.paper import name_of
from experiments.tables.query import Entry, Key, query
from experiments.tables.times import TimesRow

TRADE = ("corpus", "model", "method", "SER %", "log₁₀ ε that holds", "LiRA TPR %",
         "seconds per epoch", "of the processor")  # fmt: skip


def parts_of(
    records: Sequence[Record],
    attacks: Sequence[AttackRecord],
    times: Sequence[TimesRow],
    performance: Performance,
    grids: Sequence[Record],
    command: str,
) -> List[Part]:
    """Return the parts of the page.

    Args:
        times: the rows of Table 2.
        performance: the measurements of `benchmarks/performance.py`; empty if there are none.
        grids: records of the trials of the paper's grids.
        command: makes the page again.
    """
    entries = query(records, attacks)
    return [
        *about(entries),
        table1(entries, list(product(FAMILIES, CORPORA, METHODS)), has_empty=False),
        *([table2(times)] if times else []),
        *_trade(entries),
        *choice_of_settings(grids, entries, has_pictures=True),
        *ser_by_epsilon(records),
        *_pictures(entries, attacks),
        *step_costs(performance),
        *ends_with(records),
        Part(
            "Commands",
            [
                "What Table 1 still lacks is trained by the first, what Table 2 lacks is measured "
                "by the second; the third makes this page."
            ],
            commands=[
                "python -m experiments.table1 --out results/table1.md",
                "python -m experiments.table2 --out results/table2.md",
                command,
            ],
        ),
    ]


def _pictures(entries: Mapping[Key, Entry], attacks: Sequence[AttackRecord]) -> List[Part]:
    """Attacks against ε, their ROC curves, and the training of each method by epoch."""
    return [
        *drawn(
            "Membership inference against ε",
            "AUC of an attack on the members, against the ε that holds, conditions granted; the "
            "line is chance. Table 1 has the numbers.",
            pictures_by_place(entries, against_epsilon(entries, (AUC, LIRA_AUC))),
        ),
        *drawn(
            "ROC curves",
            "How many members an attack finds for how many false alarms. Both axes are "
            "logarithmic; the straight line is chance.",
            pictures_by_place(entries, roc_panels(attacks)),
        ),
        *drawn(
            "Epoch by epoch",
            "Learning curves, noise and clipping of each method of Table 1, a line for each seed. "
            "No ε covers these curves.",
            pictures_by_place(entries, over_epochs()),
        ),
    ]


def _trade(entries: Mapping[Key, Entry]) -> List[Part]:
    """The cost of each method, for the rows where more than SGD was measured."""
    places = {key[:2] for key in entries if key[2] != "sgd"}
    here = {key: entry for key, entry in entries.items() if key[:2] in places}
    panels = against_epsilon(here, (SER, LIRA_TPR, SECONDS))
    return drawn(
        "The cost of each method",
        "SER, LiRA's finds and the processor's seconds per epoch, of all workers together, "
        "against the ε that holds, conditions granted. "
        "Exact DP-SGD stands on the left; what is published stands far to the right, where ε "
        "promises nothing, and SGD at ∞. An epoch is its training steps. Its time by the clock "
        "depends on what else the machine did, and the processor's leaves out a GPU's; "
        "Environment lists the machines.",
        pictures_by_place(here, panels),
        PartTable.of_texts("The same as numbers", TRADE, list(map(_paid, sorted(here.items()))), 3),
    )


def _paid(item: Tuple[Key, Entry]) -> List[str]:
    (family, corpus, method), entry = item
    bound, tpr, busy = log10_of(entry), entry.lira_tpr, processor_seconds_of(entry)
    seconds = [record.seconds / max(1, record.epochs) for record in entry.records]
    return [
        name_of(corpus),
        family.upper(),
        METHODS[method].name,
        f"{100 * entry.ser.mean:.2f}",
        "∞" if bound is None else f"{bound:.1f}",
        f"{100 * tpr.mean:.1f}" if tpr else MISSING,
        f"{spread_of(seconds).mean:.2f}",
        f"{busy.mean:.2f}" if busy else MISSING,
    ]
