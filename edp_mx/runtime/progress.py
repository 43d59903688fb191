"""Progress of long tasks: log and bars for people, heartbeats for the watchdog."""

from __future__ import annotations

import logging
import sys
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, Optional

from tqdm import tqdm

from edp_mx.runtime.console_text import WrappedFormatter
from edp_mx.runtime.files import keep_private

# progress(iterable, description, total) returns the iterable, possibly behind a progress bar.
Progress = Callable[[Iterable[Any], str, Optional[int]], Iterable[Any]]
# heartbeat("epoch 2, step 17") reports that the job moves, and its place.
Heartbeat = Callable[[str], None]


def duration(seconds: float) -> str:
    """Return a time to wait, in words.

    Example:
        >>> list(map(duration, (7.2, 100, 5400)))
        ['7 s', '2 min', '1.5 h']
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5000 else f"{seconds / 3600:.1f} h"


def no_progress(iterable: Iterable[Any], _: str, __: Optional[int]) -> Iterable[Any]:
    """Return the iterable, without a progress bar."""
    return iterable


def no_heartbeat(_: str) -> None:
    """Ignore a heartbeat: nobody watches."""


def start_logging(*, is_first: bool, file: Optional[Path] = None) -> None:
    """Send rank 0's INFO to the console, and everyone's DEBUG to `file`.

    With a file, all that this process writes from now on is readable by its owner alone.
    """
    if file is not None:
        keep_private()
    root = logging.getLogger("edp_mx")
    root.setLevel(logging.DEBUG)
    for handler in list(root.handlers):
        root.removeHandler(handler)
        handler.close()
    console = logging.StreamHandler(sys.stderr)
    console.setLevel(logging.INFO if is_first else logging.ERROR)
    console.setFormatter(WrappedFormatter())
    root.addHandler(console)
    if file is not None:
        log = logging.FileHandler(file, encoding="utf-8")
        log.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        root.addHandler(log)


PIPE_PACE: Dict[str, Any] = {"mininterval": 10.0, "delay": 10.0, "ascii": " =", "ncols": 72}


class _Bar(tqdm):
    """A bar that goes on when the clock of the machine is set back.

    tqdm's own reads the time of day, and would stand still until the clock has caught up. So would
    its monitor, a thread for bars that look at the time too rarely, which also repeats lines: this
    bar has none, and looks at each item.
    """

    monitor_interval = 0
    _time = property(lambda _: time.monotonic, lambda *_: None)


def progress_bar(*, is_first: bool) -> Progress:
    """Return `progress(iterable, description, total)`: a bar on rank 0, nothing elsewhere.

    In a pipe, as horovodrun's, where a bar cannot redraw itself, each state is a line.
    """
    is_terminal = sys.stderr.isatty()
    pace = {} if is_terminal else PIPE_PACE

    def progress(iterable: Iterable[Any], description: str, total: Optional[int]) -> Iterable[Any]:
        return _Bar(
            iterable,
            desc=description,
            total=total,
            miniters=1,
            disable=not is_first,
            leave=False,
            unit_scale=total is None or total >= 50_000,
            file=sys.stderr if is_terminal else _Lines(),
            **pace,
        )

    return progress


class _Lines:
    """A file that turns the states of a progress bar into lines on stderr."""

    def write(self, text: str) -> None:
        text = text.strip("\r\n ")
        if text:
            sys.stderr.write(f"{text}\n")

    def flush(self) -> None:
        sys.stderr.flush()
