"""`edp-mx data check`: all errors of a corpus at once."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from edp_mx.cli.console import add_columns, add_command, columns_of, out_of, print_json
from edp_mx.errors import UserError
from edp_mx.runtime.console_text import count_of, wrap
from edp_mx.runtime.progress import progress_bar

EXAMPLES = """\
Reads a corpus to its end and prints each error with its file and line (the first 50, and how many
more there are), or what was read if there is none. The exit code is 2 if there are errors, also
with --skip-bad. --skip-bad writes the utterances without an error as JSON lines and says how many
records were left out. It writes nothing where a file cannot be read to its end, since nobody knows
then how many are missing.

examples:
  edp-mx data check mine.jsonl
  edp-mx data check mine.csv --columns text=utterance intent=category
  edp-mx data check mine.csv --skip-bad sound.jsonl
"""
_SUFFIXES = (".jsonl", ".jsonl.gz")


def add_check(actions: Any) -> None:
    check = add_command(actions, "check", run_check, "find all errors of a corpus", EXAMPLES)
    check.add_argument("corpus", metavar="FILE|FOLDER|NAME")
    check.add_argument("--skip-bad", dest="out", type=Path, metavar="OUT.jsonl[.gz]",
                       help="write the utterances without an error to this file")  # fmt: skip
    check.add_argument("--force", action="store_true", help="write over a file that is there")
    add_columns(check)
    check.add_argument("--json", action="store_true", help="print JSON")


def run_check(arguments: argparse.Namespace) -> int:
    """Print all errors of a corpus, or what was read; the exit code is 2 if there are any."""
    from edp_mx.data.checking import check
    from edp_mx.data.sources import find_named

    path, out = find_named(arguments.corpus), arguments.out
    if out is not None:
        if not out.name.endswith(_SUFFIXES):
            raise UserError(f"--skip-bad is {out}; name a file that ends in .jsonl or .jsonl.gz")
        out_of(arguments, [str(path)], "--skip-bad")
    columns, progress = columns_of(arguments.columns), progress_bar(is_first=True)
    findings = check(path, columns=columns, out=out, progress=progress)
    if not findings.utterances and not findings.num_errors:
        raise UserError(f"{path} holds no utterances")
    if arguments.json:
        print_json(_facts(findings))
    else:
        more = findings.num_errors - len(findings.errors)
        left = [f"and {count_of(more, 'more error')}"] * bool(more)
        print(*findings.errors, *left, wrap(_read_line(path, findings)), sep="\n")
        if out is not None:
            print(wrap(_written_line(out, findings)))
    return 2 if findings.num_errors else 0


def _facts(findings: Any) -> Any:
    """Return the counts and errors, without the utterances' own words."""
    return {
        "utterances": findings.utterances,
        "parts": dict(findings.parts),
        "intents": len(findings.intents),
        "slots": len(findings.slots),
        "users": len(findings.users),
        "num_errors": findings.num_errors,
        "left_out": findings.left_out,
        "unread_files": findings.unread,
        "is_written": findings.is_written,
        "errors": findings.errors,
    }


def _read_line(path: Path, findings: Any) -> str:
    """Say how many errors there are, and what was read without one."""
    parts = ", ".join(f"{part} {count:,}" for part, count in findings.parts.items() if part)
    users = f", {count_of(len(findings.users), 'user')}" if findings.users else ""
    read = (
        f"{count_of(findings.utterances, 'utterance')}{f' ({parts})' if parts else ''}, "
        f"{count_of(len(findings.intents), 'intent')}, "
        f"{count_of(len(findings.slots), 'slot type')}{users}"
    )
    are = "is" if findings.utterances == 1 else "are"
    if not findings.num_errors:
        return f"{path}: no errors in {read}"
    return f"{path}: {count_of(findings.num_errors, 'error')}; without an error {are} {read}"


def _written_line(out: Path, findings: Any) -> str:
    """Say what --skip-bad has written, and how much it left out."""
    if not findings.is_written:
        return (
            f"{out}: nothing was written, because a file could not be read to its end or some "
            "users are not named; mend the error above that says so"
        )
    utterances = count_of(findings.utterances, "utterance")
    records = count_of(findings.left_out, "record")
    return f"{out}  {utterances}; {records} with an error left out"
