"""Work shared by the threads that this process may use."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Callable, Dict, List, Sequence, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def allowed_threads() -> int:
    """Return how many threads this process may keep busy.

    OMP_NUM_THREADS, at most the number of cores; without it, this worker's share of the cores.
    """
    is_known = hasattr(os, "sched_getaffinity")  # not on macOS
    cores = len(os.sched_getaffinity(0)) if is_known else os.cpu_count() or 1
    given = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()  # "4,2": nested
    if given.isdecimal() and int(given) > 0:
        return min(int(given), cores)
    workers = os.environ.get("HOROVOD_LOCAL_SIZE", "1")
    return max(1, cores // int(workers))


def in_threads(
    work: Callable[[Item], Result], items: Sequence[Item], *, threads: int
) -> List[Result]:
    """Return `[work(item) for item in items]`, computed by several threads.

    Each thread takes the next item when it has finished one, and the caller is one of the threads.
    The others end with the call, so that none is left over at a fork or at exit. Whatever `work`
    raises in any thread is raised here.
    """
    todo = iter(list(enumerate(items)))  # of a list, each thread takes the next without a lock
    results: Dict[int, Result] = {}

    def take_turns() -> None:
        for index, item in todo:
            results[index] = work(item)

    others = min(threads, len(items)) - 1
    if others < 1:
        return [work(item) for item in items]
    with ThreadPoolExecutor(others) as pool:
        running = [pool.submit(take_turns) for _ in range(others)]
        take_turns()
        for thread in running:
            thread.result()
    return [results[index] for index in range(len(items))]
