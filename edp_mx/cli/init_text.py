"""What `edp-mx init` prints: the corpus, the scores to expect, and the next command."""

from __future__ import annotations

import argparse
from pathlib import Path
from shlex import quote
from typing import Any, List

from edp_mx.dp.accounting.units import UNITS
from edp_mx.errors import UserError
from edp_mx.runs.record import RECORDS
from edp_mx.runtime.console_text import count_of, lines_of


def facts(told: Any, config: Any) -> List[str]:
    """Count the corpus, and score a constant answer to all of it."""
    from edp_mx.reports.baselines import describe_baseline

    counted = [count_of(told.utterances, "utterance"), count_of(told.tokens, "token")]
    if config.labels:
        kind = "intent" if config.task.has_slots else "label"
        counted.append(count_of(len(told.intents), kind))
    if config.task.has_slots:
        counted.append(count_of(len(told.slots), "slot"))
    if told.users:
        counted.append(count_of(told.users, "user"))
    lines = [*lines_of(f"{config.path}: {', '.join(counted)}"), config.sizes]
    if told.users and told.per_user[-1] > 1 and not UNITS[config.unit].is_user:
        lines += lines_of(
            f"A user says up to {told.per_user[-1]:,} of them; with --user-key user, ε is that of "
            "all that one user says."
        )
    if told.cut:
        lines += lines_of(
            f"{told.cut:,} of {told.utterances:,} have more than {told.max_tokens} tokens, and "
            "will be cut: raise data.max_tokens, and with it data.max_pieces, or shorten them."
        )
    if config.labels:
        answer = config.task.constant_of(told.intents, sum(told.slots.values()))
        lines.append(describe_baseline(answer, config.task))
    return lines


def outlook(told: Any, config: Any) -> List[str]:
    """Print the scores to expect by measured runs like this one, or that there are none."""
    from edp_mx.reports.expectation import say
    from edp_mx.runs.expected_scores import exact_runs, expect
    from edp_mx.runs.file_types import Labels
    from edp_mx.runs.records import records_below
    from edp_mx.runs.wanted import StartKind, Wanted, labels_in_words

    if not config.labels:
        return lines_of("What to expect of a language model: docs/generation.md, measured so far.")
    start = StartKind.at(config.start.folder) if config.start else StartKind(config.family)
    labels, epsilon = Labels(len(told.intents), len(told.slots)), float(config.epsilon)
    wanted = Wanted(config.num_units, epsilon, labels, start, f"{config.unit}s")
    lines = lines_of(
        f"What to expect with {wanted.n:,} {wanted.units} for training at ε = {epsilon:g}, by runs "
        f"on about as many labels ({labels_in_words(labels)}):"
    )
    try:
        lines += say(expect(exact_runs(records_below(RECORDS), start), wanted), wanted)
    except UserError as error:
        lines += lines_of(f"Nothing: {error}.")
    if UNITS[config.unit].is_user:
        lines += lines_of("In these runs, each unit is one utterance; none with users is recorded.")
    if config.delta is not None:
        lines += lines_of("All of these are at δ = 1/(2n); at a smaller δ, expect worse.")
    if config.start is None:
        lines += lines_of(
            "From random weights, a few thousand utterances teach hardly more than the constant "
            "answer above. Start from a public encoder: call edp-mx checkpoint fetch minilm, and "
            "then this again with --start-from checkpoints/minilm."
        )
    return lines


def what_next(arguments: argparse.Namespace, config: Any, out: Path) -> List[str]:
    """Print which inputs must be public, and the next command."""
    said = (
        "No ε covers what was read of the corpus for these files: the numbers in "
        f"{out}{' and the names of the labels' if config.labels else ''}. All else above is on "
        "this screen alone."
    )
    lines = lines_of(said)
    is_public = not config.labels or arguments.labels or arguments.labels_are_public
    if not is_public:
        lines += lines_of(
            f"Read {config.labels}: if all names in it are public (they stand in your "
            'program, say), remove its line "private". Until then training is refused.'
        )
    run = quote(f"runs/{out.stem}")
    before = "next" if is_public else "after that"
    return [*lines, f"{before}: NP=2 launch/train.sh {quote(str(out))} --run {run}"]
