"""How a long task says where it is: progress bars for people, heartbeats for the watchdog."""

from __future__ import annotations

from typing import Any, Callable, Iterable, Optional

# progress(iterable, description, total) returns the iterable, possibly behind a progress bar.
Progress = Callable[[Iterable[Any], str, Optional[int]], Iterable[Any]]
# heartbeat("epoch 2, step 17") says that the job moves, and where it is.
Heartbeat = Callable[[str], None]


def no_progress(iterable: Iterable[Any], _: str, __: Optional[int]) -> Iterable[Any]:
    """Return the iterable, without a progress bar."""
    return iterable


def no_heartbeat(_: str) -> None:
    """Ignore a heartbeat: nobody watches."""
