"""One worker of a job of `workers.py`: takes steps, or all-reduces, when it is told to."""

from __future__ import annotations

import sys
import time
from typing import Any, Callable, Dict

import mxnet as mx
from sides import connected
from step_cost import parts_of
from steps import VARIANTS
from subjects import FAMILIES, Subject, part, synthetic_batch

from edp_mx.runtime import distributed
from edp_mx.runtime.distributed import Workers

TOKENS, SHORTEST = 24, 6
FEWEST = 8  # examples that a model is built on, before it is told how many


def main() -> None:
    """Builds both models, then answers each order with the seconds of one time."""
    workers = distributed.start()
    subjects: Dict[str, Subject] = {}
    work: Dict[str, Dict[str, Callable[[], object]]] = {}
    for family in FAMILIES:
        subjects[family] = subject = new_subject(family, workers)
        variant = VARIANTS["edp_sgd"](subject)
        work[family] = {"step": variant.step, "all-reduce": parts_of(variant)["all-reduce"]}
    connection = connected(sys.argv[1])
    for order in connection.orders():
        family, what = order["family"], "all-reduce"
        if "examples" in order:
            subjects[family].batch, what = share(order, workers), "step"
        connection.send(seconds_of(work[family][what], order["times"], workers))


def new_subject(family: str, workers: Workers) -> Subject:
    """A model of the paper's size."""
    batch = synthetic_batch(family, examples=FEWEST, tokens=TOKENS, shortest=SHORTEST)
    return Subject(family, batch, has_crf=True, workers=workers)


def share(order: Dict[str, Any], workers: Workers) -> Any:
    """This worker's part of the batch that all jobs share."""
    batch = synthetic_batch(
        order["family"], examples=order["examples"], tokens=TOKENS, shortest=SHORTEST
    )
    return part(batch, slice(workers.rank, None, workers.size))


def seconds_of(do: Callable[[], object], times: int, workers: Workers) -> float:
    """Of one time, from when all workers are ready until all are done."""
    workers.gather(workers.rank)
    started = time.perf_counter()
    for _ in range(times):
        do()
    mx.nd.waitall()
    workers.gather(workers.rank)
    return (time.perf_counter() - started) / times


if __name__ == "__main__":
    main()
