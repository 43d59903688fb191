"""The commands of the experiments: `python -m experiments.NAME`, from the repository's folder."""

from __future__ import annotations

import argparse
import importlib
import os
from pathlib import Path
from typing import Sequence

from edp_mx.cli import Parser, carry_out

ROOT = Path(__file__).resolve().parents[1]


def parse(name: str, words: Sequence[str]) -> argparse.Namespace:
    """Parse the command line of a module, which has the same parts as one of `edp_mx.cli`."""
    module = importlib.import_module(f"experiments.{name}")
    parser = Parser(
        prog=f"python -m {module.__name__}",
        description=module.__doc__,
        epilog=module.EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=module.run)
    module.add_options(parser)
    return parser.parse_args(words)


def main(name: str, words: Sequence[str]) -> int:
    """Run the command of a module; return its exit code, as `edp_mx.cli.main` does."""
    arguments = parse(name, words)
    path = os.environ.get("PYTHONPATH", "")
    if str(ROOT) not in path.split(os.pathsep):  # for the processes that a command starts
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT), path)))
    return carry_out(arguments, f"experiments.{name}")
