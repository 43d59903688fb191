"""What the subcommands share: logging and progress bars."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from pathlib import Path
from typing import Any, Callable, Iterable, Optional

from tqdm import tqdm


def start_logging(*, is_first: bool, file: Optional[Path] = None) -> None:
    """Rank 0's INFO to the console, everyone's DEBUG to `file`."""
    root = logging.getLogger("edp_mx")
    root.setLevel(logging.DEBUG)
    root.handlers.clear()
    console = logging.StreamHandler(sys.stderr)
    console.setLevel(logging.INFO if is_first else logging.ERROR)
    console.setFormatter(logging.Formatter("%(message)s"))
    root.addHandler(console)
    if file is not None:
        log = logging.FileHandler(file, encoding="utf-8")
        log.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        root.addHandler(log)


def progress_bar(*, is_first: bool) -> Callable[[Iterable[Any], str, int], Iterable[Any]]:
    """`progress(iterable, description, total)`: a bar on rank 0, the iterable itself elsewhere.

    A worker's stderr is a pipe of horovodrun's, where a bar cannot redraw itself: there it writes
    a line every few seconds.
    """

    def progress(iterable: Iterable[Any], description: str, total: int) -> Iterable[Any]:
        is_terminal = sys.stderr.isatty()
        return tqdm(iterable, desc=description, total=total, disable=not is_first, leave=False,
                    file=sys.stderr, mininterval=0.1 if is_terminal else 10.0,
                    delay=0 if is_terminal else 10.0, dynamic_ncols=is_terminal)

    return progress


def add_overrides(parser: argparse.ArgumentParser) -> None:
    """`--set key.path=value`, as often as one likes."""
    parser.add_argument(
        "--set", dest="overrides", action="extend", nargs="+", default=[], metavar="KEY=VALUE",
        help="override settings, e.g. --set training.epochs=3 privacy.noise_multiplier=0.5")


def speaks_for_machine() -> bool:
    """Whether this worker reports errors that all workers of a machine share."""
    return os.environ.get("HOROVOD_LOCAL_RANK", "0") == "0"
