"""Print the scores of a run's model and of a constant answer.

The constant answer of intents and slots is the most common intent of the utterances that are
scored, without slots. A language model can be scored by what it writes, too: --generate has it
reply to the prompts, and compares that with their references.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any, List

from edp_mx.cli.console import (
    add_columns,
    add_overrides,
    columns_of,
    print_json,
    require_at_least,
    whole,
)
from edp_mx.errors import UserError
from edp_mx.runtime.console_text import wrap
from edp_mx.runtime.progress import progress_bar
from edp_mx.runtime.settings import refuse_unread

EXAMPLES = """\
examples:
  edp-mx evaluate runs/atis_clc-20260101-120000
  edp-mx evaluate RUN --part validation --json
  edp-mx evaluate RUN --by-label                 # precision, recall and F1 of each label
  edp-mx evaluate RUN --file mine.jsonl          # another annotated file
  edp-mx evaluate RUN --file others.jsonl --confidence
  edp-mx evaluate RUN --generate 500             # BLEU and so on of replies to 500 prompts
  edp-mx evaluate RUN --generate 500 --set beams=4
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_directory", type=Path, metavar="RUN", help="a run directory")
    parser.add_argument(
        "--part",
        choices=("train", "validation", "test"),
        default="test",
        help="which part of the run's own split",
    )
    parser.add_argument("--file", type=Path, help="score this file or folder of utterances instead")
    add_columns(parser)
    parser.add_argument(
        "--by-label", action="store_true", help="also each label, and those taken for each other"
    )
    parser.add_argument("--generate", type=whole, metavar="N",
                        help="also reply to N distinct prompts, 0 for all, and score that; the "
                        "replies are in RUN/generated.jsonl, those to other prompts than the "
                        "test part's in RUN/generated_of_others.jsonl")  # fmt: skip
    parser.add_argument("--confidence", action="store_true",
                        help="also judge the confidences: choose temperature and threshold for "
                        "predict, serve and export, or judge those of --set; labels that the "
                        "model does not know, and out_of_scope, count as out of scope")  # fmt: skip
    add_overrides(parser, "beams=4 (of --generate), threshold=0.5 (of --confidence)")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    from edp_mx.reports import baselines
    from edp_mx.reports.confidence_report import confidence_report
    from edp_mx.reports.label_tables import label_scores_as_json, label_tables
    from edp_mx.runs.trained_run import load_run

    _check(arguments)
    trained = load_run(arguments.run_directory)
    task, utterances = trained.task, _utterances(arguments, trained)
    progress, more = progress_bar(is_first=True), []
    is_test = arguments.part == "test" and not arguments.file
    if arguments.overrides:
        trained.set_answering(arguments.overrides)
    if arguments.by_label or arguments.confidence:
        option = "--confidence" if arguments.confidence else "--by-label"
        scores, labelled, label_scores = trained.labelled(utterances, progress, option=option)
    else:
        scores = trained.score(utterances, progress)
    if arguments.generate is not None:
        more.append(trained.score_written(utterances, most=arguments.generate, is_test=is_test))
    if arguments.confidence:
        more.append(confidence_report(trained, utterances, label_scores, is_test=is_test))
    for line in baselines.unknown_labels(utterances, trained.vocabulary, task):
        print(line, file=sys.stderr)
    if arguments.json:
        value = label_scores_as_json(utterances, labelled) if arguments.by_label else {}
        for each in (scores, *more):
            value.update(each.to_dict())
        print_json(value)
        return 0
    baseline = task.constant_answer(utterances, trained.vocabulary)
    mechanism = None if arguments.file else trained.config.privacy.mechanism
    print(wrap("\n".join(each.describe() for each in (scores, *more))))
    if arguments.by_label:
        print(f"\n{label_tables(utterances, labelled, label=task.label.split()[-1])}\n")
    lines = [baselines.describe_baseline(baseline, task)]
    lines += baselines.describe_without_privacy([trained.run]) if is_test else []
    lines += baselines.verdict(scores.to_dict(), baseline, task, mechanism=mechanism)
    print(wrap("\n".join(lines)))
    return 0


def _check(arguments: argparse.Namespace) -> None:
    """Refuse options that do not go together."""
    if arguments.generate is None and not arguments.confidence:
        why = "without --generate or --confidence nothing is set"
        refuse_unread(vars(arguments), ["overrides"], why)
    require_at_least(arguments.generate or 0, 0, "--generate")
    if arguments.confidence and arguments.part == "train" and not arguments.file:
        raise UserError(
            "--confidence on the training part says nothing, since the model has seen it, and what "
            "is chosen on it no ε covers; name other utterances with --file"
        )


def _utterances(arguments: argparse.Namespace, trained: Any) -> List[Any]:
    """Return what is to be scored: a file, or a part of the run's corpus."""
    from edp_mx.data.readers import read_utterances

    if arguments.file:
        columns = columns_of(arguments.columns, trained.config.data.columns)
        found = read_utterances(arguments.file, columns=columns)
        if not found:
            raise UserError(f"{arguments.file} has no utterances: there is nothing to score")
        return found
    refuse_unread(vars(arguments), ["columns"], "without --file the run's own corpus is read")
    return trained.part(arguments.part)
