"""The command line: `edp-mx` and `python -m edp_mx`, one short module a subcommand."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import time
from typing import List, NoReturn, Optional

from edp_mx.errors import UserError

# Each module has `add_parser(subparsers)`, which sets `run=` (arguments -> exit code), and imports
# what is heavy only inside `run`: `edp-mx account` must not pay for MXNet.
SUBCOMMANDS = (
    "train",
    "pretrain",
    "evaluate",
    "predict",
    "compare",
    "account",
    "calibrate",
    "explain",
    "audit",
    "attack",
    "score",
    "data",
    "checkpoint",
)


# An error of the user mostly strikes all workers alike. Rank 0 says it at once and ends the job;
# the others speak only if they live for so many seconds more and do not know it to be shared.
OTHERS_WAIT = 3.0


class _Parser(argparse.ArgumentParser):
    """Says what is wrong with the arguments in one sentence."""

    def error(self, message: str) -> NoReturn:
        """Ends with exit code 2."""
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = _Parser(
        prog="edp-mx",
        description="Differentially private training of intent-and-slot models (eDP-SGD).",
        epilog="Start with launch/quickstart.sh; `edp-mx COMMAND --help` has examples.",
    )
    subparsers = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in SUBCOMMANDS:
        importlib.import_module(f"edp_mx.cli.{name}").add_parser(subparsers)
    return top


def main(argv: Optional[List[str]] = None) -> int:
    """Runs one subcommand.

    Returns:
        0 when all went well, 2 when the user has to mend something (one sentence on stderr).
    """
    arguments = parser().parse_args(argv)
    try:
        return arguments.run(arguments)
    except (UserError, OSError) as error:
        if isinstance(error, BrokenPipeError):  # e.g. `edp-mx … | head`
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 141
        if os.environ.get("HOROVOD_RANK", "0") != "0":
            time.sleep(OTHERS_WAIT)
            if isinstance(error, UserError) and error.is_shared:
                return 2
        print(f"edp-mx {arguments.command}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"edp-mx {arguments.command}: interrupted", file=sys.stderr)
        return 130
