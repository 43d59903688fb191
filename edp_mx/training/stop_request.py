"""A job that is asked to end, in the middle of an epoch: all workers stop after the same step."""

from __future__ import annotations

import time
from typing import Callable

from edp_mx.runtime.distributed import Workers

EVERY = 1.0  # seconds, about, between two questions; each costs the workers one gather


def nobody_asks() -> bool:
    """Answer for a training that nobody asks to end."""
    return False


class Ending:
    """The question whether this job was asked to end, with one answer for all workers.

    A signal reaches the workers at different steps, so that none may stop by itself.

    Args:
        is_asked: whether this worker was.
        clock: in seconds.
    """

    def __init__(
        self,
        workers: Workers,
        is_asked: Callable[[], bool],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._workers, self._is_asked, self._clock = workers, is_asked, clock
        self._steps = self._left = 1
        self._since = clock()

    def is_due(self) -> bool:
        """Return whether to end now; called by all workers after each of their steps."""
        if self._workers.size == 1:
            return self._is_asked()
        self._left -= 1
        if self._left:
            return False
        now = self._clock()
        per_second = self._steps / max(now - self._since, 1e-6)
        steps = max(1, min(int(EVERY * per_second), 2 * self._steps))
        answers = self._workers.gather((self._is_asked(), steps))
        self._steps = self._left = answers[0][1]  # the first worker's: the same on all
        self._since = self._clock()
        return any(asked for asked, _ in answers)
