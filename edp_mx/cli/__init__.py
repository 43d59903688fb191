"""The command line: `edp-mx` and `python -m edp_mx`, one short module a subcommand."""

from __future__ import annotations

import argparse
import importlib
import logging
import os
import sys
import time
import traceback
from typing import List, NoReturn, Optional, Sequence

from edp_mx.cli import unforeseen
from edp_mx.cli.console import add_command
from edp_mx.errors import UserError
from edp_mx.runtime.console_text import WrappedFormatter

# Each module has a description (its docstring), EXAMPLES, `add_options(parser)` and
# `run(arguments)`, the exit code; one with actions has a `run` for each. What is heavy is imported
# only inside `run`: `edp-mx account` must not pay for MXNet.
SUBCOMMANDS = {
    "init": "write a configuration for your own corpus, ready to train",
    "train": "train a model from a configuration",
    "watch": "show how far a running job is",
    "evaluate": "score a finished run",
    "predict": "label or continue texts with a trained model",
    "serve": "answer over HTTP with a trained model",
    "compare": "compare finished runs in a table",
    "runs": "list, keep and plot finished runs and records",
    "sweep": "train many settings and find the best",
    "report": "write a page of finished runs",
    "account": "epsilon as published and epsilon that holds, of a plan or of a run's ledger",
    "budget": "epsilon of all models of a corpus together",
    "calibrate": "find the noise multiplier for an epsilon",
    "plan": "the scores to expect with n utterances at an epsilon, from measured runs",
    "explain": "the guarantee of a run in words",
    "statement": "write the guarantee of a run on a page to sign",
    "audit": "attack the running system and compare the result with its epsilon",
    "attack": "membership inference against a finished run",
    "score": "SER, intent accuracy and slot F1 of predictions",
    "data": "make, fetch, check, describe and merge corpora; write text, words and labels",
    "checkpoint": "fetch, import and describe public models",
    "export": "write a trained model for ONNX Runtime or for transformers",
}
# An error of the user mostly strikes all workers alike. Rank 0 prints it at once and ends the job;
# the others speak only if they live for so many seconds more and do not know it to be shared.
OTHERS_WAIT = 3.0


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence each."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")


def parse(words: Sequence[str]) -> argparse.Namespace:
    """Parse a command line; of the subcommands, only the one that is asked for is imported."""
    top = Parser(
        prog="edp-mx",
        description="Differentially private training of models that label or write texts.",
        epilog="Start with launch/quickstart.sh; `edp-mx COMMAND --help` has examples.",
    )
    subparsers = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    asked = next((word for word in words if not word.startswith("-")), None)
    for name, summary in SUBCOMMANDS.items():
        if name != asked:
            subparsers.add_parser(name, help=summary)
            continue
        command = importlib.import_module(f"edp_mx.cli.{name}")
        run = getattr(command, "run", None)
        command.add_options(
            add_command(subparsers, name, run, summary, command.EXAMPLES, command.__doc__)
        )
    arguments, unknown = top.parse_known_args(words)
    if unknown:
        top.prog = f"{top.prog} {arguments.command}"
        top.error(f"unrecognized arguments: {' '.join(unknown)}")
    return arguments


def main(argv: Optional[List[str]] = None) -> int:
    """Run one subcommand.

    Returns:
        0 when all went well, 2 when the user has to mend something, 1 when the program has a fault
        (each with one sentence on stderr; `EDP_MX_DEBUG=1` shows the traceback of a fault).
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 (to the end)
        elif hasattr(getattr(sys, name), "reconfigure"):  # not UTF-8: "Δ" becomes an escape
            getattr(sys, name).reconfigure(errors="backslashreplace")
    arguments = parse(sys.argv[1:] if argv is None else argv)
    return carry_out(arguments, f"edp-mx {arguments.command}")


def carry_out(arguments: argparse.Namespace, program: str) -> int:
    """Run a parsed command; errors name the program. Return its exit code, as `main` does."""
    if logging.lastResort is not None:  # it prints warnings where a command has no log
        logging.lastResort.setFormatter(WrappedFormatter())
    try:
        return arguments.run(arguments)
    except KeyboardInterrupt:
        from edp_mx.runtime.processes import asked_to_end

        if os.environ.get("HOROVOD_RANK", "0") == "0":
            print(f"{program}: interrupted", file=sys.stderr)
        return asked_to_end()
    except BrokenPipeError:  # e.g. `edp-mx … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except Exception as error:  # the last resort
        return _say(error, program)


def _say(error: Exception, program: str) -> int:
    """Print one sentence, for all workers where they share an error; return the exit code."""
    known = error if isinstance(error, UserError) else unforeseen.foreseen(error)
    if known is not error:
        unforeseen.quiet_the_end()
        if os.environ.get(unforeseen.DEBUG) == "1":
            traceback.print_exception(type(error), error, error.__traceback__)
        logging.getLogger(__name__).debug("what follows ended the command", exc_info=error)
    if os.environ.get("HOROVOD_RANK", "0") != "0":
        time.sleep(OTHERS_WAIT)
        if known and known.is_shared:
            return 2
    print(f"{program}: {known or unforeseen.fault(error)}", file=sys.stderr)
    return 2 if known else unforeseen.FAULT
