"""Predict intent, slots and confidences. Tokens are what white space separates.

From standard input each line is an utterance, or JSON with 'text' or 'tokens'.
"""

from __future__ import annotations

import argparse
import json
import queue
import sys
import threading
from pathlib import Path
from typing import Any, Iterable, Iterator, List, TypeVar

from edp_mx.errors import UserError

T = TypeVar("T")

EXAMPLES = """\
examples:
  edp-mx predict RUN "call my parents at 0123"
  edp-mx predict RUN --json "call my parents at 0123" "refill my aspirin prescription"
  cut -f1 mine.tsv | edp-mx predict RUN -          # one utterance a line, JSON lines out
"""
CHUNK = 1024  # utterances predicted at once from a stream


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_directory", type=Path, metavar="RUN", help="a run directory")
    parser.add_argument("utterances", nargs="+", metavar="UTTERANCE", help="text, or - for stdin")
    parser.add_argument("--json", action="store_true", help="JSON lines (always for stdin)")


def run(arguments: argparse.Namespace) -> int:
    """Predict each utterance and print it."""
    from edp_mx.runs.trained import load_run

    from_stdin = arguments.utterances == ["-"]
    trained = load_run(arguments.run_directory)
    chunks: Iterable[List[List[str]]]
    if from_stdin:
        chunks = at_hand(read_tokens(sys.stdin))
    else:
        chunks = [[tokens_of(text, "the command line") for text in arguments.utterances]]
    for chunk in chunks:
        for prediction in trained.predict(chunk):
            if from_stdin or arguments.json:
                print(json.dumps(prediction.to_dict(), ensure_ascii=False), flush=True)
            else:
                print(prediction.describe(), flush=True)
    return 0


def at_hand(items: Iterator[T]) -> Iterator[List[T]]:
    """Group a stream into what has arrived so far: one item while a person types, many in a pipe.

    What `items` raises is raised after the items before it.
    """
    arrived: queue.Queue = queue.Queue(maxsize=4 * CHUNK)

    def read() -> None:
        try:
            for item in items:
                arrived.put((item, None))
            arrived.put((None, StopIteration()))
        except Exception as error:
            arrived.put((None, error))

    threading.Thread(target=read, daemon=True).start()
    while True:
        chunk = [arrived.get()]
        while len(chunk) < CHUNK and chunk[-1][1] is None and not arrived.empty():
            chunk.append(arrived.get())
        ended = chunk[-1][1]
        ready = [item for item, error in chunk if error is None]
        if ready:
            yield ready
        if isinstance(ended, StopIteration):
            return
        if ended is not None:
            raise ended


def read_tokens(lines: Iterable[str]) -> Iterator[List[str]]:
    """Yield the tokens of each line with words: plain text, or JSON with `text` or `tokens`."""
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        if not line.lstrip().startswith("{"):
            yield tokens_of(line, f"line {number}")
            continue
        try:
            record = json.loads(line)
            tokens = record["tokens"] if "tokens" in record else record["text"].split()
        except (ValueError, KeyError, AttributeError):
            tokens = None
        if not isinstance(tokens, list) or not tokens or not all(map(_is_word, tokens)):
            raise UserError(
                f"line {number} of standard input is no utterance: write plain text, "
                'or {"text": "…"} or {"tokens": ["…"]}'
            )
        yield tokens


def _is_word(token: Any) -> bool:
    return isinstance(token, str) and bool(token.strip())


def tokens_of(text: str, where: str) -> List[str]:
    """Split at white space; refuse an utterance without a word."""
    if not text.split():
        raise UserError(f"{where}: an utterance needs at least one word")
    return text.split()
