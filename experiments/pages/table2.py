"""Table 2 beside the paper's: the time of an epoch, and the factor by which privacy raises it."""

from __future__ import annotations

from statistics import median
from typing import List, Mapping, Optional, Sequence

from edp_mx.reports.records_page import environments_of
from edp_mx.reports.report_parts import Cell, Part, PartTable, as_markdown, counted
from edp_mx.reports.table import show_quartiles
from experiments.tables.paper import TABLE_2, Times, name_of
from experiments.tables.times import TimesRow

HEADER = ("corpus", "N × threads", "SGD, s per epoch", "eDP-SGD ÷ SGD", "DP-SGD, loop ÷ SGD",
          "DP-SGD, ghost ÷ SGD", "SGD, utterances/s", "B", "n", "steps timed")  # fmt: skip
FACTORS = HEADER[:2] + HEADER[3:6]
SUMMARY = "The seconds of an epoch with SGD, and the factors by which privacy makes it longer."
EXPLANATION = (
    "N Horovod workers of one machine, whose cores they share. In each round every method takes "
    "the same steps on the same utterances, one method after the other, and a ratio is taken round "
    "by round. Shown are medians, in round brackets the quartiles of three rounds or more, in "
    "square brackets the paper's number with 8 GPUs. DP-SGD clips each utterance: loop is one "
    "backward pass for each, as in the paper, and ghost one for all. ≈ is an epoch of which only "
    "the steps in the last column were run. B is the batch of all workers, n the training part. "
    "Processor time is that of all workers together, without what they wait for each other or for "
    "other programs."
)
OF_A_DRAW = (
    "Of a stand-in 20,000 utterances were drawn and trained on, at the batch and the model of the "
    "size whose epoch is shown; memory at 10⁴, 10⁵ and 10⁶ utterances is in results/performance.md."
)
OF_BERT = (
    "BERT starts from random weights, with which a step costs as much as with others, and has as "
    "many word pieces as the paper's."
)


def table2(rows: Sequence[TimesRow]) -> Part:
    """Return Table 2 as a part of a report, from the record of `python -m experiments.table2`."""
    tables: List[PartTable] = []
    for family in dict.fromkeys(row.family for row in rows):
        of_it = [row for row in rows if row.family == family]
        tables += [
            PartTable(family.upper(), HEADER, [_row(row) for row in of_it]),
            PartTable(
                f"{family.upper()}, factors of processor time",
                FACTORS,
                [[*_names(row), *_factors(row, "processor_seconds")] for row in of_it],
            ),
        ]
    notes = dict.fromkeys(row.note for row in rows if row.note)
    texts = [EXPLANATION]
    texts += [OF_A_DRAW] if any(row.measured_on != row.n for row in rows) else []
    texts += [OF_BERT] if any(row.family == "bert" for row in rows) else []
    return Part("Table 2", texts, tables=tables, notes=list(notes))


def table2_page(rows: Sequence[TimesRow], missing: Sequence[str]) -> str:
    """Return `results/table2.md`, with a line for each missing row that was asked for."""
    parts = [table2(rows)]
    if missing:
        parts.append(Part("Missing", points=missing))
    parts += [
        Part("Environment", points=environments_of([row.machine for row in rows], "row")),
        Part("Commands", commands=list(dict.fromkeys(row.command for row in rows))),
    ]
    return as_markdown("The paper's Table 2", SUMMARY, parts)


def _row(row: TimesRow) -> List[Cell]:
    seconds, paper = row.seconds["sgd"], _paper(row)
    per_epoch = row.steps_per_epoch / row.steps
    is_whole = per_epoch == 1 and row.measured_on == row.n
    epochs = [each * per_epoch for each in seconds]
    digits = 1 if median(epochs) < 1000 else 0
    return [
        *_names(row),
        _measured(epochs, digits, paper and paper.sgd, "" if is_whole else "≈ "),
        *_factors(row, "seconds"),
        _measured([row.steps * row.batch_size / each for each in seconds], 0),
        counted(row.batch_size),
        counted(row.n),
        Cell(f"{len(epochs)} × {row.steps:,} of {row.steps_per_epoch:,}"),
    ]


def _names(row: TimesRow) -> List[Cell]:
    name = name_of(row.corpus)
    return [Cell(name), Cell(f"{row.workers} × {row.threads}", "", row.workers)]


def _factors(row: TimesRow, kind: str) -> List[Cell]:
    """How much longer than SGD eDP-SGD and DP-SGD take, by loop and by ghost, round by round."""
    times: Mapping[str, Sequence[float]] = getattr(row, kind)
    paper = _paper(row)

    def factor(name: str, of_paper: Optional[float] = None) -> Cell:
        ratios = [one / other for one, other in zip(times[name], times["sgd"])]
        return _measured(ratios, 2, of_paper)

    return [
        factor("edp_sgd", paper and paper.edp_sgd),
        factor("dp_sgd_loop", paper and paper.dp_sgd),
        factor("dp_sgd_ghost"),
    ]


def _paper(row: TimesRow) -> Optional[Times]:
    return TABLE_2.get(row.family, {}).get(row.corpus)


def _measured(
    values: Sequence[float], digits: int, of_paper: Optional[float] = None, mark: str = ""
) -> Cell:
    said = "" if of_paper is None else f"{of_paper}"
    return Cell(f"{mark}{show_quartiles(values, digits)}", said, median(values))
