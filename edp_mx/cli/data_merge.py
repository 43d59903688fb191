"""`edp-mx data merge`: several labelled corpora as one."""

from __future__ import annotations

import argparse
from typing import Any

from edp_mx.cli.console import (
    add_columns,
    add_command,
    add_new_file,
    columns_of,
    out_of,
    require_at_least,
    whole,
)
from edp_mx.runtime.console_text import wrap

EXAMPLES = """\
Writes one labelled corpus, to be trained on without privacy before a training with privacy starts
from it (model.start_from). Labels get the name of their corpus ("atis.flight", "B-atis.city"),
repeated utterances are written once, and :SIZE takes a random subset. Leave out the corpus that you
will train on with privacy: the data of the first training is not protected.

examples:
  edp-mx data merge snips nlu_eval dstc8:40000 health:20000 --out merged/for_atis.jsonl.gz
  edp-mx data merge snips calls.csv --columns text=utterance --out merged/both.jsonl.gz
  edp-mx train configs/model/clc.yaml configs/mechanism/sgd.yaml --set data.corpus=merged \\
    --set data.path=merged/for_atis.jsonl.gz --run runs/start_for_atis
"""


def add_merge(actions: Any) -> None:
    """Add the action to `edp-mx data`."""
    merge = add_command(
        actions, "merge", run_merge, "write one labelled corpus from several", EXAMPLES
    )
    merge.add_argument("corpora", nargs="+", metavar="CORPUS|PATH[:SIZE]")
    add_new_file(merge, "FILE.jsonl[.gz]")
    add_columns(merge)
    merge.add_argument("--seed", type=whole, default=0, metavar="S",
                       help="of subsets, order and stand-ins, default 0")  # fmt: skip


def run_merge(arguments: argparse.Namespace) -> int:
    """Write one corpus from several."""
    from edp_mx.data.merging import Wanted, merge

    require_at_least(arguments.seed, 0, "--seed")
    wanted = [Wanted.parse(text) for text in arguments.corpora]
    out = out_of(arguments, [each.corpus for each in wanted])
    counts = merge(wanted, out, seed=arguments.seed, columns=columns_of(arguments.columns))
    told = ", ".join(f"{label} {count:,}" for label, count in counts.items())
    print(wrap(f"{out}  {sum(counts.values()):,} utterances: {told}"))
    return 0
