"""The one place that imports Horovod: who am I, and do we agree?"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Callable, List, TypeVar

import horovod.mxnet as hvd
import mxnet as mx
import numpy as np
from horovod.mxnet import DistributedTrainer, allreduce_

from edp_mx.errors import UserError
from edp_mx.runtime import messages

__all__ = ["DistributedTrainer", "Workers", "allreduce_", "device", "start"]

T = TypeVar("T")


@dataclass(frozen=True)
class Workers:
    """This worker among all: `rank` of `size`, and `local_rank` of those on this machine."""

    rank: int
    size: int
    local_rank: int

    @property
    def is_first(self) -> bool:
        """Whether this is rank 0, which alone writes files and talks to the console."""
        return self.rank == 0

    def gather(self, value: Any) -> List[Any]:
        """Return every worker's value, by rank; see `messages.encode` for what may be sent.

        It is sent as data: Horovod's own way would unpickle, and so run, whatever comes in.
        """
        if self.size == 1:
            return [value]
        mine = np.frombuffer(messages.encode(value), np.uint8)
        sizes = _gathered(np.array([len(mine)], np.int32), "edp_mx.size")  # (size,)
        parts = np.split(_gathered(mine, "edp_mx.value"), np.cumsum(sizes)[:-1])
        return [messages.decode(part.tobytes()) for part in parts]

    def mean(self, values: np.ndarray) -> np.ndarray:
        """Return the mean over all workers of a small array, in float64."""
        return np.mean(self.gather(np.asarray(values, np.float64)), axis=0)

    def broadcast(self, value: Any) -> Any:
        """Return rank 0's value on every worker.

        By way of `gather`, which returns when all have it: Horovod's own broadcast returns to the
        sender at once, and if that then ends, the others never get the value.
        """
        return self.gather(value)[0]

    def on_first(self, compute: Callable[[], T]) -> T:
        """Compute a value on rank 0 and return it on every worker.

        A UserError is raised on every worker: one that failed alone would leave the others waiting.
        On rank 0 its cause is kept.
        """
        value, refusal = None, None
        if self.is_first:
            try:
                value = compute()
            except UserError as error:
                refusal = error
        value, said = self.broadcast((value, refusal and str(refusal)))
        if said is not None:
            raise UserError(said, is_shared=True) from refusal
        return value  # type: ignore[return-value]

    def broadcast_array(self, array: mx.nd.NDArray, name: str) -> None:
        """Overwrite an array with rank 0's, in place."""
        if self.size > 1:
            hvd.broadcast_(array, root_rank=0, name=name)
            array.wait_to_read()

    def agree(self, what: str, value: Any) -> None:
        """Refuse to go on, on every worker, when they differ in something that must be equal.

        Without this check a difference (a file that another machine lacks, an older checkout) hangs
        the job: Horovod waits forever for a tensor that one rank never sends.
        """
        values = self.gather(str(value))
        if any(other != values[0] for other in values):
            seen = "; ".join(f"worker {rank}: {other}" for rank, other in enumerate(values))
            raise UserError(f"the workers disagree on {what}: {seen}", is_shared=True)


def _gathered(array: np.ndarray, name: str) -> np.ndarray:
    """The arrays of all workers, one behind the other."""
    return hvd.allgather(mx.nd.array(array, dtype=array.dtype), name=name).asnumpy()


def start() -> Workers:
    """Join the other workers of this job; outside `horovodrun` there is one worker."""
    hvd.init()
    return Workers(hvd.rank(), hvd.size(), hvd.local_rank())


def device(workers: Workers) -> mx.Context:
    """Choose where to compute: one GPU per worker, or the CPU."""
    if not mx.runtime.Features().is_enabled("CUDA") or os.environ.get("EDP_MX_DEVICE") == "cpu":
        return mx.cpu()
    available = mx.context.num_gpus()
    if workers.local_rank >= available:
        raise UserError(
            f"worker {workers.rank} wants GPU {workers.local_rank} and the machine has "
            f"{available}: start fewer workers (NP=…) or set EDP_MX_DEVICE=cpu"
        )
    return mx.gpu(workers.local_rank)
