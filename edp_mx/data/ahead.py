"""What a loop needs next is made while it is still busy with what it has."""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Callable, Deque, Iterable, Iterator, TypeVar

T = TypeVar("T")
R = TypeVar("R")


def ahead(make: Callable[[T], R], items: Iterable[T], *, depth: int = 2) -> Iterator[R]:
    """`map(make, items)`, with the next `depth` results made in one background thread.

    Args:
        make: called in the order of the items, never twice at once.
        items: drawn in the caller's own thread, so that random numbers are drawn as without this.

    Raises:
        Whatever `make` raises, where its result would have come. After that nothing comes.

    Guarantee: the thread ends with the iterator, also where that is closed before its end.

    Example:
        >>> list(ahead(lambda n: n * n, range(4)))
        [0, 1, 4, 9]
    """
    waiting: Deque[Future[R]] = deque()
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="ahead") as pool:
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
