"""Predict labels, slots and confidences. A text is cut by the run's `data.tokenizer`.

From standard input each line is an utterance, or JSON with 'text' or 'tokens' (and 'second', where
the model reads two texts), and gets one answer.
"""

from __future__ import annotations

import argparse
import json
import queue
import sys
import threading
import time
from pathlib import Path
from typing import (
    Any,
    Dict,
    Iterable,
    Iterator,
    List,
    NamedTuple,
    Optional,
    Sequence,
    TextIO,
    TypeVar,
)

from edp_mx.cli.console import add_overrides
from edp_mx.data.readers.assembly import most_of_a_line
from edp_mx.data.tokenization import Cut, with_second
from edp_mx.data.utterance import are_words
from edp_mx.errors import UserError
from edp_mx.runtime.console_text import count_of
from edp_mx.runtime.json_text import NotJSON, parse_json
from edp_mx.runtime.progress import progress_bar

T = TypeVar("T")

EXAMPLES = """\
Each line of standard input gets one answer, in order. As JSON, an answer keeps the other keys of
its line, such as an id; to a line that is empty or broken it is {"error": "..."}, and the next line
is read. As text, an answer is one line: "call: call [relation: mum]". How many lines were answered
per second is said on stderr. Of several utterances on the command line, one without a word gets an
error as its answer, the others theirs, and the exit code is 2.

examples:
  edp-mx predict RUN "call my parents at 0123"
  edp-mx predict RUN --json "call my parents at 0123" "refill my aspirin prescription"
  cut -f1 mine.tsv | edp-mx predict RUN -          # one utterance per line, JSON lines out
  edp-mx predict RUN - --format text < mine.txt
  echo '{"text": "It rains.", "second": "It is dry."}' | edp-mx predict RUN -    # two texts

An intent or label with less confidence than a threshold becomes "out of scope":
  edp-mx predict RUN "asdf qwer" --set threshold=0.5 temperature=1.2

A language model continues each text, by default with the likeliest piece each time. --set says how:
max_pieces, beams, or temperature, top_k, top_p and seed to draw.
  edp-mx predict RUN 'name = "Aroma"; food = "Thai" <|reply|>' --set beams=4
  edp-mx predict RUN "once upon a time" --set temperature=0.8 top_p=0.9 max_pieces=100
"""
CHUNK = 1024  # utterances predicted at once from a stream


class Request(NamedTuple):
    """A line of a stream: its own keys, and its tokens or its fault."""

    kept: Dict[str, Any]
    tokens: List[str]
    error: str = ""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_directory", type=Path, metavar="RUN",
                        help="a run directory, or the folder of an export to ONNX")  # fmt: skip
    parser.add_argument("utterances", nargs="+", metavar="UTTERANCE", help="text, or - for stdin")
    parser.add_argument("--format", choices=("jsonl", "text"),
                        help="of the answers (default: jsonl for stdin, else text)")  # fmt: skip
    parser.add_argument("--json", dest="format", action="store_const", const="jsonl",
                        help="the same as --format jsonl")  # fmt: skip
    add_overrides(parser, "threshold=0.5, or of a language model temperature=0.8 top_p=0.9")


def run(arguments: argparse.Namespace) -> int:
    from edp_mx.runs.exported.exported_model import load_model

    trained = load_model(arguments.run_directory)
    if arguments.overrides:
        trained.set_answering(arguments.overrides)
    if arguments.utterances == ["-"]:
        _answer_stream(trained, as_json=arguments.format != "text")
        return 0
    given = [trained.tokens_of(text) for text in arguments.utterances]
    if given[0] and len(given) == 1 and arguments.format != "jsonl" and sys.stdout.isatty():
        _print_while_written(trained, given[0])
        return 0
    found = iter(trained.predict([tokens for tokens in given if tokens]) if any(given) else ())
    as_json = arguments.format == "jsonl"
    for number, tokens in enumerate(given, start=1):
        if tokens:
            prediction = next(found)
            _print(_json(prediction.to_dict()) if as_json else prediction.describe())
            continue
        error = f"utterance {number} needs at least one word"
        _print(_json({"error": error}) if as_json else f"error: {error}")
    return 0 if all(given) else 2


def _print_while_written(trained: Any, tokens: List[str]) -> None:
    """Print the answer to one utterance, a text while it is written."""
    shown = 0

    def show(answer: Any, end: str = "") -> None:
        nonlocal shown
        text = answer.describe().rstrip("\ufffd")  # the first bytes of a character
        print(text[shown:], end=end, flush=True)
        shown = len(text)

    (answer,) = trained.predict([tokens], heard=show)
    show(answer, end="\n")


def _answer_stream(trained: Any, *, as_json: bool) -> None:
    """Answer each line of standard input, and print the speed on stderr."""
    for stream in (sys.stdin, sys.stdout):  # a byte that is not UTF-8 spoils its own line alone
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="surrogateescape", newline="\n")
    began, count, broken = time.monotonic(), 0, 0
    requests: Iterable[Request] = read_requests(
        _bounded(sys.stdin), trained.tokens_of, reads_second=trained.reads_second
    )
    if not sys.stdout.isatty():  # where the answers themselves show how far it is
        requests = progress_bar(is_first=True)(requests, "reading", None)
    for chunk in at_hand(iter(requests)):
        count, broken = count + len(chunk), broken + sum(bool(each.error) for each in chunk)
        for line in answers(trained, chunk, as_json=as_json):
            _print(line)
    seconds = max(time.monotonic() - began, 1e-9)
    print(
        f"{count_of(count, 'line')} in {seconds:.1f} s, {count / seconds:,.0f} per second; "
        f"{broken:,} without a prediction",
        file=sys.stderr,
    )


def answers(trained: Any, chunk: Sequence[Request], *, as_json: bool) -> Iterator[str]:
    wanted = [request.tokens for request in chunk if not request.error]
    found = iter(trained.predict(wanted) if wanted else ())
    for request in chunk:
        if request.error:
            error = {**request.kept, "error": request.error}
            yield _json(error) if as_json else f"error: {request.error}"
        else:
            prediction = next(found)
            answer = {**request.kept, **prediction.to_dict()}
            yield _json(answer) if as_json else " ".join(prediction.line().split())


def _json(value: Any) -> str:
    """Return strict JSON on one line."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _print(text: str) -> None:
    print(text.encode(errors="replace").decode(), flush=True)


def at_hand(items: Iterator[T]) -> Iterator[List[T]]:
    """Group a stream into the items at hand: one while a person types, many in a pipe.

    An error of `items` is raised after the items before it.
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


def _bounded(stream: TextIO) -> Iterator[str]:
    """Yield the lines of a stream; of one that is too long no more than shows that it is."""
    most = most_of_a_line()
    while line := stream.readline(most + 2):
        rest = line
        while len(rest) > most and not rest.endswith("\n"):
            rest = stream.readline(most + 2)
        yield line


def read_requests(
    lines: Iterable[str], cut: Cut, *, reads_second: Optional[bool] = None
) -> Iterator[Request]:
    """Yield the request of each line: text, which is `cut`, or JSON with `text` or `tokens`.

    Args:
        reads_second: see `with_second`.
    """
    for number, line in enumerate(lines, start=1):
        line = line.lstrip("\ufeff") if number == 1 else line
        kept, tokens, error = _parse(line, cut, reads_second)
        yield Request(kept, tokens, f"line {number}: {error}" if error else "")


def _parse(line: str, cut: Cut, reads_second: Optional[bool]) -> Request:
    if len(line.rstrip("\r\n")) > most_of_a_line():
        return Request({}, [], f"longer than {most_of_a_line():,} characters")
    try:
        line.encode()
    except UnicodeEncodeError:
        return Request({}, [], "not UTF-8 text")
    if not line.lstrip().startswith("{"):
        return Request({}, cut(line), "" if line.split() else "empty")
    try:
        record = parse_json(line)
    except NotJSON as error:
        return Request({}, [], f"begins like JSON and is not ({error})")
    record.pop("error", None)
    text, tokens = record.get("text"), record.get("tokens")
    if tokens is None and isinstance(text, str):
        tokens = cut(text)
    try:
        tokens = with_second(tokens, record, cut, reads_second=reads_second)
    except UserError as error:
        return Request(record, [], str(error))
    if not are_words(tokens):
        return Request(record, [], 'needs a word in {"text": "…"} or {"tokens": ["…"]}')
    return Request(record, tokens)
