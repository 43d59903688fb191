"""Make the paper's Table 1: train the runs without a record, and print ours beside the paper's.

Call the same command again after an interruption, or to spend another budget: what is finished,
below --runs or --records, is not trained again. Its records are kept in --records.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Sequence

from edp_mx.attacks.membership.lira.likelihood import check_shadow_count
from edp_mx.cli.console import add_limits, add_overrides, add_wide, show, whole, workers_of
from edp_mx.runs.attack_records import collect_attacks
from edp_mx.runs.record import RECORDS
from edp_mx.runs.records import records_below
from edp_mx.runs.sweep.budget import Budget
from edp_mx.runtime.files import keep_private, refuse_unwritable, write_text
from edp_mx.runtime.progress import start_logging
from experiments.command import main
from experiments.pages.table1_page import table1_page
from experiments.records import GRIDS
from experiments.tables.attacks import make, shadow_cells
from experiments.tables.cells import Request, Table, cells_of
from experiments.tables.methods import CORPORA, FAMILIES, METHODS

EXAMPLES = """\
examples:
  what is there, and what would be trained:
    python -m experiments.table1 --dry-run
  one row of the paper's, three seeds, for at most two hours; call it again to go on:
    python -m experiments.table1 --corpora atis --models clc --seeds 0 1 2 \\
      --budget-hours 2 --out results/table1.md
  the paper's attack too, and LiRA with 16 shadow models for each corpus and model:
    python -m experiments.table1 --corpora atis --models clc --attacks --lira 16
  the same on runs of which only the records are left, which are trained again:
    python -m experiments.table1 --corpora atis --models clc --attacks --lira 16 --retrain
  small models:
    python -m experiments.table1 --small --corpora atis snips --models clc
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    for name, known in (("corpora", CORPORA), ("models", FAMILIES), ("methods", tuple(METHODS))):
        add(f"--{name}", nargs="+", choices=known, default=known, metavar=name.upper(),
            help=f"of {', '.join(known)} (all)")  # fmt: skip
    add("--seeds", nargs="+", type=whole, default=[0], metavar="SEED",
        help="one training for each (0)")  # fmt: skip
    add_limits(parser)
    add("--records", type=Path, default=RECORDS, metavar="FOLDER",
        help=f"records of finished runs, to read and to keep ({RECORDS})")  # fmt: skip
    add("--runs", type=Path, default=Path("runs/table1"), metavar="FOLDER",
        help="for the run directories (runs/table1)")  # fmt: skip
    add("--configs", dest="configs_folder", type=Path, default=Path("configs"), metavar="FOLDER",
        help="the shipped configurations (configs)")  # fmt: skip
    add("--grids", type=Path, default=GRIDS, metavar="FILE.jsonl",
        help=f"records of the paper's grids, if they are there ({GRIDS})")  # fmt: skip
    add("--out", type=Path, metavar="FILE.md", help="write the table there too")
    add("--small", action="store_true", help="small models (configs/small)")
    add("--attacks", action="store_true",
        help="the paper's attack on each run too; its shadow, SGD on another corpus, is trained"
    )  # fmt: skip
    add("--lira", type=whole, default=0, metavar="K",
        help="LiRA on each run too, by K shadow models of SGD: 4 or more")  # fmt: skip
    add("--retry", action="store_true", help="train again what failed")
    add("--retrain", action="store_true",
        help="train again runs that an attack needs and that only have a record")  # fmt: skip
    add("--dry-run", action="store_true", help="train nothing")
    add_overrides(parser)
    add_wide(parser)


def run(arguments: argparse.Namespace) -> int:
    folder, records = arguments.runs, arguments.records
    request = _request(arguments)
    table = Table(request, cells_of(request), shadow_cells(request), folder, records)
    start_logging(is_first=True)
    keep_private()
    if not arguments.dry_run:
        refuse_unwritable(records / "of a run")
    if arguments.out:
        refuse_unwritable(arguments.out)
    grids = records_below(arguments.grids)

    def page(said: Sequence[str] = ()) -> str:
        attacks = collect_attacks([records, folder])
        text = table1_page(request, table.cells, attacks, said, grids)
        if arguments.out:
            write_text(arguments.out, text)
        return text

    said = make(
        table,
        Budget(hours=arguments.budget_hours, at_once=arguments.workers_at_once),
        is_retried=arguments.retry,
        is_read_only=arguments.dry_run,
        makes_again=arguments.retrain,
        on_end=page,
    )
    show(page(said).rstrip(), is_wide=arguments.wide)
    return 0


def _request(arguments: argparse.Namespace) -> Request:
    workers = workers_of(arguments, "experiments.table1")
    if arguments.lira:
        check_shadow_count(arguments.lira)
    return Request(
        configs=arguments.configs_folder,
        corpora=arguments.corpora,
        families=arguments.models,
        methods=arguments.methods,
        seeds=list(dict.fromkeys(arguments.seeds)),
        workers=workers,
        overrides=arguments.overrides,
        is_attacked=arguments.attacks,
        lira=arguments.lira,
        is_small=arguments.small,
    )


if __name__ == "__main__":
    sys.exit(main("table1", sys.argv[1:]))
