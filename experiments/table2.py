"""Make the paper's Table 2: the time of an epoch of SGD, and the factor of each private method.

Real Horovod workers take real training steps, the methods in turns. Call the same command again
after an interruption: what the record beside --out has is not measured again.
"""

from __future__ import annotations

import argparse
import math
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from edp_mx.cli.console import add_overrides, add_wide, refuse_in_job, require_at_least, show, whole
from edp_mx.errors import UserError
from edp_mx.runtime.progress import start_logging
from experiments.command import main
from experiments.tables.methods import CORPORA, FAMILIES

if TYPE_CHECKING:
    from experiments.tables.times import TimesRequest

EXAMPLES = """\
examples:
  one row of the paper's with one and two workers, within ten minutes:
    python -m experiments.table2 --corpora atis --models clc --workers 1 2 --budget-seconds 600 \\
      --out results/table2.md
  the million-utterance rows, from steps on a draw of each corpus:
    python -m experiments.table2 --corpora health communication video --workers 1 \\
      --out results/table2.md
  a first look with a small model:
    python -m experiments.table2 --corpora health --models clc --workers 1 --set data.size=2000 \\
      model.hidden_size=64
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    for name, known in (("corpora", CORPORA), ("models", FAMILIES)):
        add(f"--{name}", nargs="+", choices=known, default=known, metavar=name.upper(),
            help=f"of {', '.join(known)} (all)")  # fmt: skip
    add("--workers", nargs="+", type=whole, default=[1, 2, 8], metavar="N",
        help="numbers of Horovod workers (1 2 8)")  # fmt: skip
    add("--steps", type=whole, default=4, metavar="S",
        help="of each method in a round, at most an epoch's (4)")  # fmt: skip
    add("--rounds", type=whole, default=5, metavar="R", help="that count, at most (5)")
    add("--budget-seconds", type=float, default=math.inf, metavar="S",
        help="for all rows of this call; each has a round at least that counts")  # fmt: skip
    add("--note", default="", metavar="TEXT",
        help="a note on the new measurements, e.g. the other load of the machine")  # fmt: skip
    add("--again", action="store_true", help="measure again the rows that the record has")
    add("--configs", dest="configs_folder", type=Path, default=Path("configs"), metavar="FOLDER",
        help="the shipped configurations (configs)")  # fmt: skip
    add("--out", type=Path, metavar="FILE.md",
        help="write the table there too, and its record beside it as FILE.json")  # fmt: skip
    add("--into", type=Path, help=argparse.SUPPRESS)  # the job of a single row
    add_overrides(parser)
    add_wide(parser)


def run(arguments: argparse.Namespace) -> int:
    from experiments.tables.times import Times, times_cells

    request = _request(arguments)
    if arguments.into:
        return _measure(arguments, request)
    refuse_in_job("experiments.table2 starts the workers itself")
    from edp_mx.runtime.files import write_text
    from experiments.pages.table2 import table2_page

    out = arguments.out
    if out is not None and out.suffix != ".md":
        raise UserError(f"--out is {out}; name a file that ends in .md")
    start_logging(is_first=True)
    cells = times_cells(request)
    times = Times(out and out.with_suffix(".json"))
    missing = [cell for cell in cells if arguments.again or not times.has(cell)]

    def page() -> str:
        return table2_page(times.rows, times.said)

    def write() -> None:
        if out is not None:
            write_text(out, page())

    times.measure(missing, request, budget=arguments.budget_seconds, on_end=write)
    if not times.rows:
        raise UserError("nothing could be measured; the reason of each row is above")
    write()
    show(page().rstrip(), is_wide=arguments.wide)
    return 0


def _request(arguments: argparse.Namespace) -> TimesRequest:
    from experiments.tables.times import TimesRequest

    for name, values in (("--workers", arguments.workers), ("--steps", [arguments.steps]),
                         ("--rounds", [arguments.rounds])):  # fmt: skip
        require_at_least(min(values), 1, name)
    return TimesRequest(
        configs=arguments.configs_folder,
        corpora=list(dict.fromkeys(arguments.corpora)),
        families=list(dict.fromkeys(arguments.models)),
        workers=sorted(set(arguments.workers)),
        steps=arguments.steps,
        rounds=arguments.rounds,
        overrides=arguments.overrides,
        note=arguments.note,
        command=_command(arguments),
    )


def _measure(arguments: argparse.Namespace, request: TimesRequest) -> int:
    """Be one of the workers of a row."""
    from edp_mx.runtime.distributed import start
    from edp_mx.runtime.files import write_json
    from experiments.tables.step_times import time_cell
    from experiments.tables.times import times_cells

    (cell,) = times_cells(request)
    workers = start()
    start_logging(is_first=workers.is_first)
    row = time_cell(
        cell,
        workers,
        folder=arguments.into.parent / ".workers",
        rounds=arguments.rounds,
        budget=arguments.budget_seconds,
    )
    if workers.is_first:
        write_json(arguments.into, row)
    return 0


def _command(arguments: argparse.Namespace) -> str:
    """Return the command that was given, without its folders, its note and its budget."""
    words = ["python", "-m", "experiments.table2", "--corpora", *arguments.corpora]
    words += ["--models", *arguments.models]
    words += ["--workers", *map(str, arguments.workers)]
    words += [f"--steps={arguments.steps}", f"--rounds={arguments.rounds}"]
    words += ["--set", *arguments.overrides] if arguments.overrides else []
    return shlex.join(words)


if __name__ == "__main__":
    sys.exit(main("table2", sys.argv[1:]))
