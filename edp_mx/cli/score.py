"""Compare two annotations of the same utterances."""

from __future__ import annotations

import argparse
from itertools import zip_longest
from pathlib import Path
from typing import Any, Iterator, List, Tuple

from edp_mx.cli.console import tell
from edp_mx.data.readers.assembly import read_json_lines
from edp_mx.data.utterance import Utterance
from edp_mx.errors import UserError
from edp_mx.metrics.evaluation import evaluate
from edp_mx.metrics.ser import ALIGNMENTS
from edp_mx.metrics.spans import split_tag
from edp_mx.runtime.console_text import count_of

EXAMPLES = """\
Both files hold one utterance per line, in the same order:
  {"tokens": ["call", "mum"], "slots": ["O", "B-contact"], "intent": "call"}

alignments (which spans that are not identical count as one substitution):
  overlap   those that share a token
  type      those of the same name anywhere in the utterance
  exact     none: a wrong span is one deletion and one insertion

examples:
  edp-mx score test.jsonl predictions.jsonl
  edp-mx score test.jsonl predictions.jsonl --alignment exact --json
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("reference", type=Path, metavar="REFERENCE.jsonl")
    parser.add_argument("hypothesis", type=Path, metavar="HYPOTHESIS.jsonl")
    parser.add_argument("--alignment", choices=tuple(ALIGNMENTS), default="overlap",
        help="which wrong spans count as one substitution (overlap)")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="JSON; ser as a ratio")


def run(arguments: argparse.Namespace) -> int:
    pairs = _read_pairs(arguments.reference, arguments.hypothesis)
    references, hypotheses = zip(*pairs)
    scores = evaluate(references, hypotheses, arguments.alignment)
    named = f"alignment        {arguments.alignment:>8}"
    return tell(arguments, scores.to_dict, lambda: f"{scores.describe()}\n{named}")


def _read_pairs(reference: Path, hypothesis: Path) -> List[Tuple[Utterance, Utterance]]:
    """Return the lines of both files, which must annotate the same tokens."""
    pairs: List[Tuple[Utterance, Utterance]] = []
    for ours, theirs in zip_longest(_read(reference), _read(hypothesis)):
        if ours is None or theirs is None:
            short, long = (reference, hypothesis) if ours is None else (hypothesis, reference)
            raise UserError(
                f"{short} has {count_of(len(pairs), 'utterance')} but {long} has more; "
                "both must hold the same ones in the same order"
            )
        if len(ours.tokens) != len(theirs.tokens):
            raise UserError(
                f"{theirs.id}: {count_of(len(theirs.tokens), 'token')}, but {ours.id} "
                f"has {len(ours.tokens)}"
            )
        for position, (wanted, found) in enumerate(zip(ours.tokens, theirs.tokens), start=1):
            if wanted != found:
                raise UserError(
                    f"{theirs.id}: token {position} is {found!r}, but {wanted!r} in {ours.id}"
                )
        pairs.append((ours, theirs))
    if not pairs:
        raise UserError(f"{reference} and {hypothesis} hold no utterances")
    return pairs


def _read(path: Path) -> Iterator[Utterance]:
    """Yield the utterances of a JSON-lines file; the id of each is its file and line."""
    return (_checked(record, place) for _, place, record in read_json_lines(path))


def _checked(record: Any, place: str) -> Utterance:
    if not isinstance(record, dict):
        raise UserError(f"{place}: not an object with tokens, slots and intent")
    for key in ("tokens", "slots"):
        value = record.get(key)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise UserError(f"{place}: {key} must be a list of strings")
    if not isinstance(record.get("intent"), str):
        raise UserError(f"{place}: intent must be a string")
    tokens, slots = record["tokens"], record["slots"]
    if len(tokens) != len(slots):
        raise UserError(
            f"{place}: {count_of(len(tokens), 'token')} but {count_of(len(slots), 'slot')}"
        )
    try:
        for tag in slots:
            split_tag(tag)
    except UserError as error:
        raise UserError(f"{place}: {error}") from error
    return Utterance(tuple(tokens), tuple(slots), record["intent"], id=place)
