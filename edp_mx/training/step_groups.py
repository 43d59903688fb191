"""How many steps are taken at once, when a checkpoint is due, and whether a job is to end."""

from __future__ import annotations

import time
from typing import Callable, Optional

from edp_mx.runtime.distributed import Workers
from edp_mx.training.config import Checkpoints

FIRST = 8  # steps, while nobody knows how long one takes
ALMOST = 0.95  # of the minutes: rather a little early than one stretch late


class Pace:
    """Divides the steps of an epoch into stretches; knows after which a checkpoint is due.

    Every `every_steps` of an epoch a stretch ends. With `every_minutes` the number of steps is
    estimated from those before, and grows to at most twice the last. The clock is in seconds.
    """

    def __init__(
        self, config: Checkpoints, *, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._config, self._clock = config, clock
        self._saved = clock()
        self._stretch = FIRST
        self._seconds: Optional[float] = None  # of a step

    def stretch(self, step: int, left: int) -> int:
        """Return how many steps to take, after the first `step` of an epoch and with `left`."""
        count, every = left, self._config.every_steps
        if every:
            count = min(count, every - step % every)
        if self._config.every_minutes:
            if self._seconds is not None:
                ahead = 60 * self._config.every_minutes - (self._clock() - self._saved)
                wanted = int(max(0.0, ahead) / max(self._seconds, 1e-9)) + 1
                self._stretch = min(wanted, 2 * self._stretch)
            count = min(count, self._stretch)
        self._began, self._count = self._clock(), count
        return count

    def is_due(self, step: int) -> bool:
        """Return whether a checkpoint is due; called when a stretch has ended with this step."""
        now, every = self._clock(), self._config.every_steps
        self._seconds = (now - self._began) / self._count
        seconds = 60 * self._config.every_minutes
        is_late = seconds > 0 and now - self._saved >= ALMOST * seconds
        return is_late or (every > 0 and step % every == 0)

    def saved(self) -> None:
        """Note that a checkpoint was written now."""
        self._saved = self._clock()


EVERY = 1.0  # seconds, about, between two questions; each costs the workers one gather


class Ending:
    """The question whether this job was asked to end, with one answer for all workers.

    A signal reaches the workers at different steps, so that none may stop by itself.

    Args:
        is_asked: whether this worker was.
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
