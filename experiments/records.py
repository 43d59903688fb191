"""Add the records below a folder, of runs there or kept ones, to the files of results/.

Such as another clone has kept: a line for each run that is not there yet, and for each attack.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any, Callable, Dict, List, Sequence

from edp_mx.errors import UserError
from edp_mx.runs.record import RECORDS, run_id
from edp_mx.runs.record_files import Kept
from edp_mx.runtime.console_text import count_of
from experiments.command import main

GRIDS = RECORDS / "grids.jsonl"  # of the trials of the paper's grids
TIMES = RECORDS / "table2.json"  # where `python -m experiments.table2` keeps times of steps
PERFORMANCE = RECORDS / "performance.json"  # of benchmarks/performance.py
EXAMPLES = """\
examples:
  python -m experiments.records add ../another_clone/results/records
  python -m experiments.records add sweeps/paper_none --into results/grids.jsonl
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("action", choices=("add",))
    add("places", nargs="+", type=Path, metavar="FOLDER", help="with records or runs")
    add("--into", type=Path, default=RECORDS, metavar="FOLDER|FILE.jsonl",
        help=f"folder of runs.jsonl and attacks.jsonl, or a file for runs ({RECORDS})")  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    from edp_mx.runs.attack_records import collect_attacks
    from edp_mx.runs.record_files import ATTACKS, RUNS, key_of_attack, put_attacks, put_runs
    from edp_mx.runs.records import collect, records_below

    into = arguments.into
    is_file = into.suffix == ".jsonl"
    runs, attacks = (into, None) if is_file else (into / RUNS, into / ATTACKS)
    found = [each.record for each in collect(arguments.places)]
    there = records_below(runs)
    new = _new(found, there, run_id)
    made, made_there = collect_attacks(arguments.places), []
    if attacks is None and made:
        raise UserError(f"there are attacks too: name a folder with --into in place of {into}")
    if attacks is not None and attacks.exists():
        made_there = collect_attacks([attacks])
    new_attacks = _new(made, made_there, key_of_attack)
    put_runs(runs, new)
    if attacks is not None:
        put_attacks(attacks, new_attacks)
    added = f"{count_of(len(new), 'run')} and {count_of(len(new_attacks), 'attack')} added"
    print(f"{added}; there already were {len(found) - len(new)} and {len(made) - len(new_attacks)}")
    return 0


def _new(found: Sequence[Kept], there: Sequence[Kept], key: Callable[[Kept], Any]) -> List[Kept]:
    """The missing records; refuse one that differs from the kept record of the same id."""
    known: Dict[Any, Kept] = {key(each): each for each in there}
    old = set(known)
    for each in found:
        if known.setdefault(key(each), each) != each:
            raise UserError(
                f"{each.name} ({key(each)}) exists and differs, so nothing was "
                "added; to replace it, use `edp-mx runs keep`"
            )
    return [known[each] for each in known if each not in old]


if __name__ == "__main__":
    sys.exit(main("records", sys.argv[1:]))
