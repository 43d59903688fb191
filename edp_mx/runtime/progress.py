"""How a long task says where it is: progress bars for people, heartbeats for the watchdog."""

from __future__ import annotations

from typing import Any, Callable, Iterable, Optional

# progress(iterable, description, total) returns the iterable, possibly behind a progress bar.
Progress = Callable[[Iterable[Any], str, Optional[int]], Iterable[Any]]
# heartbeat("epoch 2, step 17") says that the job moves, and where it is.
Heartbeat = Callable[[str], None]


def duration(seconds: float) -> str:
    """Return a time to wait, in words.

    Example:
        >>> [duration(seconds) for seconds in (7.2, 100, 5400)]
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
