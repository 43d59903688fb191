"""The page of all results: both tables, SER against ε, the runs, where the numbers come from."""

from __future__ import annotations

from itertools import product
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from edp_mx.reports.grid_choice import choice_of_settings
from edp_mx.reports.method_panels import (
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
from edp_mx.reports.method_plots import pictures_by_place
from edp_mx.reports.panels import Picture
from edp_mx.reports.parts import MISSING, Cell, Part, PartTable
from edp_mx.reports.provenance import environments_of, not_covered
from edp_mx.reports.record_plots import CHOSEN
from edp_mx.reports.ser_plots import Plot, plot_by_epsilon
from edp_mx.reports.step_costs import step_costs
from edp_mx.reports.summary import (
    footnotes,
    format_epsilon,
    format_holding_epsilon,
    log10_or_infinity,
    stated_note,
)
from edp_mx.reports.table1 import table1
from edp_mx.reports.table1_about import about
from edp_mx.reports.table2 import table2
from edp_mx.runs.attack_records import AttackRecord
from edp_mx.runs.measured import chosen, measurements, spread_of
from edp_mx.runs.record import Record
from edp_mx.runs.tables.methods import CORPORA, FAMILIES, METHODS
from edp_mx.runs.tables.paper import name_of
from edp_mx.runs.tables.query import Entry, Key, query

TITLE = "Results of edp_mx"
RUNS = ("run", "seed", "SER %", "intents %", "slot F1 %", "ε published", "ε that holds", "δ", "n",
        "epochs", "workers", "minutes", "date")  # fmt: skip

TRADE = ("corpus", "model", "method", "SER %", "log₁₀ ε that holds", "LiRA TPR %",
         "seconds per epoch", "of the processor")  # fmt: skip


def summary_of(records: Sequence[Record]) -> str:
    """Return the first sentences of a page."""
    said = [
        f"Made from the records of {len(records)} finished run{'s' * (len(records) != 1)}. SER is "
        "the semantic error rate on the test part; lower is better. No ε covers these scores."
    ]
    return " ".join([*said, *stated_note(records)])


def parts_of(
    records: Sequence[Record],
    attacks: Sequence[AttackRecord],
    times: Sequence[Dict[str, Any]],
    performance: Mapping[str, Any],
    grids: Sequence[Record],
    command: str,
) -> List[Part]:
    """Return the parts of the page.

    Args:
        times: the rows of Table 2.
        performance: what `benchmarks/performance.py` measured; empty where it is not there.
        grids: records of the trials of the paper's grids.
        command: what makes the page anew.
    """
    entries = query(records, attacks)
    keys = list(product(FAMILIES, CORPORA, METHODS))
    return [
        *about(entries),
        table1(entries, keys, has_empty=False),
        *([table2(times)] if times else []),
        *_trade(entries),
        *choice_of_settings(grids, entries, has_pictures=True),
        *_by_epsilon(plot_by_epsilon(chosen(measurements(records)), columns=1)),
        *_drawn(
            "Membership inference against ε",
            "AUC of an attack on the members, against the ε that holds, conditions granted; the "
            "line is chance. Table 1 has the numbers.",
            pictures_by_place(entries, against_epsilon(entries, (AUC, LIRA_AUC))),
        ),
        *_drawn(
            "ROC curves",
            "How many members an attack finds for how many false alarms. Both axes are "
            "logarithmic; the straight line is chance.",
            pictures_by_place(entries, roc_panels(attacks)),
        ),
        *_drawn(
            "Epoch by epoch",
            "Learning curves, noise and clipping of each method of Table 1, a line for each seed. "
            "No ε covers these curves.",
            pictures_by_place(entries, over_epochs()),
        ),
        *step_costs(performance),
        _runs(records),
        Part("What no ε covers", points=not_covered()),
        environment_part(records),
        Part(
            "Commands",
            [
                "What Table 1 still lacks is trained by the first, what Table 2 lacks is measured "
                "by the second; the third makes this page."
            ],
            commands=[
                "edp-mx table1 --out results/table1.md",
                "edp-mx table2 --out results/table2.md",
                command,
            ],
        ),
    ]


def environment_part(records: Sequence[Record]) -> Part:
    """Return the machines and versions of the runs."""
    return Part("Environment", points=environments_of(records))


def _trade(entries: Mapping[Key, Entry]) -> List[Part]:
    """What each method pays, at the places where more than SGD was measured."""
    places = {key[:2] for key in entries if key[2] != "sgd"}
    here = {key: entry for key, entry in entries.items() if key[:2] in places}
    panels = against_epsilon(here, (SER, LIRA_TPR, SECONDS))
    return _drawn(
        "What each method pays",
        "SER, LiRA's finds and the processor's seconds per epoch, of all workers together, "
        "against the ε that holds, conditions granted. "
        "Exact DP-SGD stands on the left; what is published stands far to the right, where ε "
        "promises nothing, and SGD at ∞. An epoch is its training steps. Its time by the clock "
        "depends on what else the machine did, and the processor's leaves out a GPU's; "
        "Environment lists the machines.",
        pictures_by_place(here, panels),
        PartTable.of_texts("The same as numbers", TRADE, list(map(_paid, sorted(here.items())))),
    )


def _paid(item: Tuple[Key, Entry]) -> List[str]:
    (family, corpus, method), entry = item
    bound, tpr, busy = log10_of(entry), entry.lira_tpr, processor_seconds_of(entry)
    seconds = [record["seconds"] / max(1, record["epochs"]) for record in entry.records]
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


def _by_epsilon(plot: Optional[Plot]) -> List[Part]:
    if plot is None:
        return []
    return _drawn(
        "SER against ε",
        "ε for one utterance, at most 100, with δ = 1/(2n), conditions granted. " + CHOSEN,
        [Picture.of("", plot.figure)],
        PartTable.of_markdown("The same as numbers", plot.table),
    )


def _drawn(title: str, text: str, pictures: Sequence[Picture], *tables: PartTable) -> List[Part]:
    """A part with pictures; none where there was nothing to draw."""
    return [Part(title, [text], pictures, tables)] if pictures else []


def _runs(records: Sequence[Record]) -> Part:
    notes: List[str] = []
    ordered = sorted(records, key=lambda each: (each["corpus"], each["family"], each["name"]))
    table = PartTable("Every run", RUNS, [_run(record, notes) for record in ordered])
    return Part("Runs", tables=[table], notes=footnotes(notes))


def _run(record: Record, notes: List[str]) -> List[Cell]:
    test = record["test"]
    shares = [100 * test[name] for name in ("ser", "intent_accuracy", "slot_f1")]
    return [
        Cell(record["name"]),
        _number(record["settings"].get("training.seed", 0)),
        *(Cell(f"{share:.2f}", "", share) for share in shares),
        Cell(format_epsilon(record["as_published"]), "", log10_or_infinity(record["as_published"])),
        Cell(format_holding_epsilon(record, notes), "", log10_or_infinity(record["holds"])),
        Cell(f"{record['delta']:.2g}" if record["delta"] else MISSING, "", record["delta"]),
        *(_number(record[name]) for name in ("n", "epochs", "workers")),
        Cell(f"{record['seconds'] / 60:.1f}", "", record["seconds"]),
        Cell(record["date"]),
    ]


def _number(value: int) -> Cell:
    return Cell(f"{value:,}", "", value)
