"""Put language models beside each other: their scores, what they cost, and their first replies.

Each run has been evaluated by `edp-mx evaluate RUN --generate N`. Its replies are the first of
RUN/generated.jsonl, not chosen.
"""

from __future__ import annotations

import argparse
import sys
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, List, Tuple

from edp_mx.runs.records import value_of
from edp_mx.runtime.json_text import json_in, read_json
from experiments.command import main

if TYPE_CHECKING:
    from edp_mx.runs.record import Record

EXAMPLES = """\
examples:
  python -m experiments.generation runs/private_gpt2 runs/without_privacy
  python -m experiments.generation runs/lm/* --out results/generation.md
"""
SHOWN = 10  # replies of a run
HEADER = ("run", "n", "examples read", "trained parameters", "ε", "perplexity", "BLEU %",
          "ROUGE-L %", "F1 of words %", "slot errors %", "processor minutes")  # fmt: skip


def add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("runs", nargs="+", type=Path, metavar="RUN", help="finished runs of task: causal_lm")
    add("--out", type=Path, metavar="FILE.md", help="write the page there too")


def run(arguments: argparse.Namespace) -> int:
    from edp_mx.reports.table import render_table
    from edp_mx.runtime.files import write_text

    found = [read(path) for path in arguments.runs]
    table = render_table(HEADER, [row for row, _ in found])
    page = "\n\n".join([table, *(replies for _, replies in found)])
    if arguments.out is not None:
        runs = " ".join(map(str, arguments.runs))
        made = f"Made by `python -m experiments.generation {runs}`."
        write_text(arguments.out, f"# Language models beside each other\n\n{made}\n\n{page}\n")
    print(page)
    return 0


def read(path: Path) -> Tuple[List[str], str]:
    """Return the row of a run, and its first replies with their prompts and a reference."""
    from edp_mx.errors import UserError
    from edp_mx.runs.record import record_of
    from edp_mx.runs.run_directory import RunDirectory
    from edp_mx.runs.trained_run import GENERATED

    record = record_of(RunDirectory(path))
    if "bleu" not in (record.written or {}):
        command = f"edp-mx evaluate {path} --generate 300"
        raise UserError(f"{path} has no replies to its test part: {command}")
    with open(path / GENERATED, encoding="utf-8") as file:
        replies = [
            json_in(line, f"{file.name}, line {number}")
            for number, line in enumerate(islice(file, SHOWN), start=1)
        ]
    lines = [
        f"- `{one['prompt']}`\\\n  {one['text'] or '(nothing)'}\\\n  *{one['references'][0]}*"
        for one in replies
    ]
    about = f"## {record.name}\n\nThe prompt, the reply, and in italics a published reply.\n\n"
    return _row(record, path), about + "\n".join(lines)


def _row(record: Record, path: Path) -> List[str]:
    assert record.written is not None
    written, batch = record.written, value_of(record, "training.batch_size")
    epsilon = record.holds.epsilon
    size = sum(layer["size"] for layer in read_json(path / "layers.json"))
    # Not the clock's, which depend on what else a machine does.
    seconds = (record.by_epoch or {}).get("processor_seconds", ())
    known = [each for each in seconds if each is not None]
    shares = ("bleu", "rouge_l", "word_f1")
    return [
        record.name,
        f"{record.n:,}",
        f"{record.steps * batch:,}",
        f"{size:,}",
        "–" if record.mechanism == "none" else "∞" if epsilon is None else f"{epsilon:.2f}",
        f"{record.test['perplexity']:.1f}",
        *(f"{100 * written[key]:.1f}" for key in shares),
        f"{100 * written['slot_error_rate']:.1f}" if written["values"] else "–",
        f"{sum(known) / 60:.0f}" if known and len(known) == len(seconds) else "–",
    ]


if __name__ == "__main__":
    sys.exit(main("generation", sys.argv[1:]))
