"""A page of runs: SER against ε, the attacks on them, every run, where the numbers come from."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Iterable, List, Optional, Sequence, Tuple

from edp_mx.dp.accounting.coverage import ALWAYS_OPEN, BROUGHT, FLOATING_POINT, SEVERAL_UTTERANCES
from edp_mx.errors import UserError
from edp_mx.reports.footnotes import footnotes
from edp_mx.reports.panels import Picture
from edp_mx.reports.record_plots import CHOSEN
from edp_mx.reports.records_head import head_of_records
from edp_mx.reports.report_parts import Cell, Part, PartTable, as_html, as_markdown, counted
from edp_mx.reports.ser_plots import Plot, plot_by_epsilon
from edp_mx.reports.summary import (
    format_epsilon,
    format_holding_epsilon,
    log10_or_infinity,
    stated_note,
)
from edp_mx.reports.table import parse_table
from edp_mx.runs.attack_files import AttackRecord
from edp_mx.runs.attack_records import collect_attacks
from edp_mx.runs.file_types import Machine, Record
from edp_mx.runs.measurements import chosen, measurements
from edp_mx.runs.records import collect
from edp_mx.runtime.console_text import count_of
from edp_mx.runtime.files import companion, write_text
from edp_mx.tasks.registry import by_task
from edp_mx.tasks.task import Task

TITLE = "Results of edp_mx"
AFTER_SCORES = ("ε published", "ε that holds", "δ", "n", "epochs", "workers", "minutes", "date")
ATTACKS = ("run", "attack", "by", "AUC %", "TPR % at a FPR of 1 %")


def read(places: Sequence[Path], out: Path) -> Tuple[List[Record], List[AttackRecord]]:
    """Return the records of runs, and of attacks on them, below some places.

    Raises:
        UserError: there are none, or `out` does not end in .html.
    """
    if out.suffix != ".html":
        raise UserError(f"--out is {out}; name a file that ends in .html")
    records = [found.record for found in collect(places)]
    if not records:
        raise UserError(
            f"{places[0]} has no record of a finished run: train one to its end, or name others"
        )
    return records, collect_attacks(places)


def write_pages(
    out: Path, records: Sequence[Record], attacks: Sequence[AttackRecord], parts: Sequence[Part]
) -> List[Path]:
    """Write a page as HTML, and beside it as Markdown; return where they are."""
    head = head_of_records(records, attacks)
    markdown = companion(out, ".md", f"# {TITLE}\n")
    content = (TITLE, summary_of(records), parts, head)
    write_text(out, as_html(*content))
    write_text(markdown, as_markdown(*content))
    return [out, markdown]


def summary_of(records: Sequence[Record]) -> str:
    """Return the first sentences of a page."""
    said = [
        f"Made from the records of {count_of(len(records), 'finished run')}. SER is "
        "the semantic error rate on the test part; lower is better. No ε covers these scores."
    ]
    return " ".join([*said, *stated_note(records)])


def parts_of(
    records: Sequence[Record], attacks: Sequence[AttackRecord], command: str
) -> List[Part]:
    return [
        *ser_by_epsilon(records),
        *_attacks(attacks),
        *ends_with(records),
        Part("Commands", commands=[command]),
    ]


def ser_by_epsilon(records: Sequence[Record]) -> List[Part]:
    """Return the part with SER against ε; none where no record has a finite ε."""
    plot: Optional[Plot] = plot_by_epsilon(chosen(measurements(records)), columns=1)
    if plot is None:
        return []
    return drawn(
        "SER against ε",
        "ε for one utterance, at most 100, with δ = 1/(2n), conditions granted. " + CHOSEN,
        [Picture.of("", plot.figure)],
        PartTable.of_texts("The same as numbers", *parse_table(plot.table), 3),
    )


def drawn(title: str, text: str, pictures: Sequence[Picture], *tables: PartTable) -> List[Part]:
    """Return a part with pictures; none where there was nothing to draw."""
    return [Part(title, [text], pictures, tables)] if pictures else []


def ends_with(records: Sequence[Record]) -> List[Part]:
    """Return every run, the limits of any ε, and the machines."""
    return [_runs(records), Part("What no ε covers", points=not_covered()), environment(records)]


def environment(records: Sequence[Record]) -> Part:
    """Return the machines and versions of the runs."""
    return Part("Environment", points=environments_of(each.machine for each in records))


def environments_of(machines: Iterable[Machine], what: str = "run") -> List[str]:
    """Return a line for each machine with its versions, and how many runs it made."""
    counts = Counter(map(_environment, machines))
    return [f"{text}: {count_of(count, what)}" for text, count in counts.items()]


def _environment(of: Machine) -> str:
    parts = [
        of.processor or of.machine or "an unknown machine",
        f"{of.cores} cores" if of.cores else "",
        f"Python {of.python}" if of.python else "",
        *(f"{name} {version}" for name, version in (of.packages or {}).items()),
        *(f"{name}'s products: {each.get('kernels')}" for name, each in (of.blas or {}).items()),
    ]
    return ", ".join(filter(None, parts))


def not_covered() -> List[str]:
    """Return the leaks that no ε of any run covers."""
    open_ = (SEVERAL_UTTERANCES, *ALWAYS_OPEN, BROUGHT, FLOATING_POINT)
    return [f"{text[0].upper()}{text[1:]}." for text in open_]


def _attacks(attacks: Sequence[AttackRecord]) -> List[Part]:
    rows = [
        [
            record.name,
            record.attack,
            name,
            f"{100 * found.auc.value:.1f}",
            f"{100 * found.tpr.value:.1f}",
        ]
        for record in attacks
        for name, found in record.success.items()
    ]
    text = "How well an attack tells members from others; an AUC of 50 % is chance."
    table = PartTable.of_texts("Every attack", ATTACKS, rows)
    return [Part("Membership inference", [text], tables=[table])] if rows else []


def _runs(records: Sequence[Record]) -> Part:
    notes: List[str] = []
    ordered = sorted(records, key=lambda each: (each.corpus, each.family, each.name))
    tables = []
    for task, its in by_task(ordered, lambda each: each.settings):
        header = ("run", "seed", *(each.heading for each in task.metrics), *AFTER_SCORES)
        rows = [_run(record, task, notes) for record in its]
        tables.append(PartTable("Every run", header, rows))
    return Part("Runs", tables=tables, notes=footnotes(notes))


def _run(record: Record, task: Task, notes: List[str]) -> List[Cell]:
    shares = [each.factor * record.test[each.key] for each in task.metrics]
    return [
        Cell(record.name),
        counted(record.settings.get("training.seed", 0)),
        *(Cell(f"{share:.2f}", "", share) for share in shares),
        Cell(format_epsilon(record.as_published), "", log10_or_infinity(record.as_published)),
        Cell(format_holding_epsilon(record, notes), "", log10_or_infinity(record.holds)),
        Cell(f"{record.delta:.2g}", "", record.delta),
        *map(counted, (record.n, record.epochs, record.workers)),
        Cell(f"{record.seconds / 60:.1f}", "", record.seconds),
        Cell(record.date),
    ]
