"""The page of all results: both tables, SER against ε, the runs, where the numbers come from."""

from __future__ import annotations

from itertools import product
from typing import Any, Dict, Iterator, List, Optional, Sequence

from matplotlib.figure import Figure

from edp_mx.reports.figures import picture_of
from edp_mx.reports.parts import MISSING, Cell, Part, PartTable
from edp_mx.reports.provenance import environments_of, not_covered
from edp_mx.reports.record_plots import CHOSEN
from edp_mx.reports.ser_plots import Plot, plot_by_epsilon
from edp_mx.reports.summary import footnotes, format_epsilon, format_holding_epsilon
from edp_mx.reports.table1 import table1
from edp_mx.reports.table2 import table2
from edp_mx.reports.trade_plot import plot_trade
from edp_mx.runs.attack_records import AttackRecord
from edp_mx.runs.measured import chosen, measurements
from edp_mx.runs.record import Record
from edp_mx.runs.tables.methods import CORPORA, FAMILIES, METHODS
from edp_mx.runs.tables.query import query

TITLE = "Results of edp_mx"
RUNS = ("run", "seed", "SER %", "intents %", "slot F1 %", "ε published", "ε that holds", "δ", "n",
        "epochs", "workers", "minutes", "date")  # fmt: skip


def summary_of(records: Sequence[Record]) -> str:
    """Return the first sentences of a page."""
    return (
        f"Made from the records of {len(records)} finished run{'s' * (len(records) != 1)}. SER is "
        "the semantic error rate on the test part; lower is better. No ε covers these scores."
    )


def parts_of(
    records: Sequence[Record],
    attacks: Sequence[AttackRecord],
    times: Sequence[Dict[str, Any]],
    command: str,
) -> List[Part]:
    """Return the parts of the page.

    Args:
        times: the rows of Table 2.
        command: what makes the page anew.
    """
    entries = query(records, attacks)
    keys = list(product(FAMILIES, CORPORA, METHODS))
    best = chosen(measurements(records))
    return [
        table1(entries, keys, has_empty=False),
        *([table2(times)] if times else []),
        *_trade(plot_trade(entries)),
        *_by_epsilon(plot_by_epsilon(best)),
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


def _trade(figure: Optional[Figure]) -> Iterator[Part]:
    if figure is not None:
        yield Part(
            "What each method pays",
            [
                "SER against the ε that holds, for each method of Table 1, conditions granted. "
                "Exact DP-SGD stands on the left; what is published stands far to the right, where "
                "ε promises nothing, and SGD at ∞. The numbers are those of Table 1."
            ],
            {
                "Test SER against log10 of the ε that holds, by corpus and method": picture_of(
                    figure
                )
            },
        )


def _by_epsilon(plot: Optional[Plot]) -> Iterator[Part]:
    if plot is not None:
        yield Part(
            "SER against ε",
            ["ε for one utterance, at most 100, with δ = 1/(2n), conditions granted. " + CHOSEN],
            {"Test SER against ε by corpus, model and mechanism": picture_of(plot.figure)},
            [PartTable.of_markdown("The same as numbers", plot.table)],
        )


def _runs(records: Sequence[Record]) -> Part:
    notes: List[str] = []
    ordered = sorted(records, key=lambda each: (each["corpus"], each["family"], each["name"]))
    table = PartTable("Every run", RUNS, [_run(record, notes) for record in ordered])
    return Part("Runs", tables=[table], notes=footnotes(notes))


def _run(record: Record, notes: List[str]) -> List[Cell]:
    test, bound = record["test"], record["holds"]["log10_epsilon"]
    shares = [100 * test[name] for name in ("ser", "intent_accuracy", "slot_f1")]
    return [
        Cell(record["name"]),
        _number(record["settings"].get("training.seed", 0)),
        *(Cell(f"{share:.2f}", "", share) for share in shares),
        Cell(format_epsilon(record["as_published"]), "", record["as_published"]["log10_epsilon"]),
        Cell(format_holding_epsilon(record, notes), "", bound),
        Cell(f"{record['delta']:.2g}" if record["delta"] else MISSING, "", record["delta"]),
        *(_number(record[name]) for name in ("n", "epochs", "workers")),
        Cell(f"{record['seconds'] / 60:.1f}", "", record["seconds"]),
        Cell(record["date"]),
    ]


def _number(value: int) -> Cell:
    return Cell(f"{value:,}", "", value)
