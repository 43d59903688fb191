"""`edp-mx predict`: what a trained model understands."""

from __future__ import annotations

import argparse
import json
import sys
from itertools import islice
from pathlib import Path
from typing import Iterable, Iterator, List

EXAMPLES = """examples:
  edp-mx predict RUN "call my parents at 0123"
  edp-mx predict RUN --json "call my parents at 0123" "refill my aspirin prescription"
  cut -f1 mine.tsv | edp-mx predict RUN -          # one utterance a line, JSON lines out
"""
CHUNK = 1024  # utterances predicted at once from a stream


def add_parser(subparsers: argparse._SubParsersAction) -> None:
    """Adds the subcommand."""
    parser = subparsers.add_parser(
        "predict",
        help="understand utterances with a trained model",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Intent, slots and confidences. Tokens are what white space separates. From "
        "standard input each line is an utterance, or JSON with 'text' or 'tokens'.",
    )
    parser.add_argument("run_directory", type=Path, metavar="RUN", help="a run directory")
    parser.add_argument("utterances", nargs="+", metavar="UTTERANCE", help="text, or - for stdin")
    parser.add_argument("--json", action="store_true", help="JSON lines (always for stdin)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Predicts each utterance and prints it."""
    from edp_mx.experiments.trained import load_run

    from_stdin = arguments.utterances == ["-"]
    tokens = (
        read_tokens(sys.stdin)
        if from_stdin
        else (tokens_of(text, "the command line") for text in arguments.utterances)
    )
    trained = load_run(arguments.run_directory)
    while True:
        chunk: List[List[str]] = list(islice(tokens, CHUNK))
        if not chunk:
            return 0
        for prediction in trained.predict(chunk):
            as_json = from_stdin or arguments.json
            print(
                json.dumps(prediction.to_dict(), ensure_ascii=False)
                if as_json
                else prediction.describe(),
                flush=True,
            )


def read_tokens(lines: Iterable[str]) -> Iterator[List[str]]:
    """The tokens of each line that is not empty: plain text, or JSON with `text` or `tokens`.

    Raises:
        UserError: a line that begins like JSON and is not; names the line.
    """
    from edp_mx.errors import UserError

    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        if not line.lstrip().startswith("{"):
            yield tokens_of(line, f"line {number}")
            continue
        try:
            record = json.loads(line)
            tokens = record["tokens"] if "tokens" in record else record["text"].split()
        except (ValueError, KeyError, AttributeError) as error:
            raise UserError(
                f"line {number} of standard input is no utterance: write plain text, "
                'or {"text": "…"} or {"tokens": ["…"]}'
            ) from error
        yield tokens_of(" ".join(map(str, tokens)), f"line {number}")


def tokens_of(text: str, where: str) -> List[str]:
    """Splits at white space; an utterance without a word is refused."""
    from edp_mx.errors import UserError

    if not text.split():
        raise UserError(f"{where}: an utterance needs at least one word")
    return text.split()
