"""The budget of a call for its trainings, and the folder in which it alone may train."""

from __future__ import annotations

import fcntl
import math
import time
from pathlib import Path
from typing import IO

from edp_mx.errors import UserError
from edp_mx.runs.sweep.processes import Ended

_WAIT_FOR_LOCK = 60.0  # seconds; the trainings of a killed call take some to end


class Budget:
    """The trainings and hours of a call that are left, and the time that the rest will take."""

    def __init__(self, runs: float = math.inf, hours: float = math.inf, at_once: int = 1) -> None:
        self.at_once = at_once
        self._left, self._end = runs, time.monotonic() + 3600 * hours
        self._finished, self._seconds = 0, 0.0

    def permits(self) -> bool:
        """Return whether one more training may begin; count it if so."""
        if self._left <= 0 or time.monotonic() >= self._end:
            return False
        self._left -= 1
        return True

    def note(self, ended: Ended) -> None:
        """Count a training that has ended."""
        if not ended.trial.error:
            self._seconds += ended.seconds
            self._finished += 1

    def time_left(self, count: int) -> str:
        """Return the end of a sentence: how long so many more trainings will take."""
        if not self._finished or not count:
            return ""
        minutes = self._seconds / self._finished * count / self.at_once / 60
        return f"; about {minutes:.0f} min left" if minutes >= 1 else "; less than a minute left"


def locked(path: Path) -> IO[str]:
    """Open the file that only one process per folder may hold at a time."""
    file = open(path, "w", encoding="utf-8")  # noqa: SIM115 (open as long as the trainings)
    until = time.monotonic() + _WAIT_FOR_LOCK
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return file
        except BlockingIOError:
            if time.monotonic() > until:
                raise UserError(f"another process trains in {path.parent}: let it end") from None
            time.sleep(1)
        except OSError:  # a file system without locks
            return file
