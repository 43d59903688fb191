"""Makes the next items of a loop while the loop is still busy."""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Callable, Deque, Generator, Iterable, TypeVar

T = TypeVar("T")
R = TypeVar("R")


def prefetch(
    make: Callable[[T], R], items: Iterable[T], *, depth: int = 2
) -> Generator[R, None, None]:
    """Yield `map(make, items)`, with the next `depth` results made in one background thread.

    Items are drawn in the caller's own thread, so that random numbers are drawn as without this.
    What `make` raises comes in place of its result, and nothing after that. The thread ends with
    the iterator, even if that is closed before its end.
    """
    waiting: Deque[Future[R]] = deque()
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="prefetch") as pool:
        try:
            for item in items:
                waiting.append(pool.submit(make, item))
                if len(waiting) > depth:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
