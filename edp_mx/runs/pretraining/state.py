"""Where a pre-training run stands: one file, from which it goes on at exactly that step."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Optional

import mxnet as mx
import numpy as np

from edp_mx.errors import UserError
from edp_mx.runtime.distributed import Workers
from edp_mx.training.state import Arrays, read_state, write_state


@dataclass(frozen=True, eq=False)
class PretrainingState:
    """A run after `step` steps.

    Attributes:
        step: steps done.
        seconds: spent on them.
        fingerprint: of the training lines.
        num_workers: that did them.
        weights: the parameters, by name.
        optimizer: what `optimizer_arrays` returned.
    """

    step: int
    seconds: float
    fingerprint: str
    num_workers: int
    weights: Arrays
    optimizer: Arrays

    def write(self, path: Path) -> None:
        """Replaces the file, whole or not at all."""
        write_state(path, self._facts(), {"weights": self.weights, "optimizer": self.optimizer})

    @classmethod
    def read(cls, path: Path) -> PretrainingState:
        """Reads what `write` wrote.

        Raises:
            UserError: the file is missing, torn, or of another kind.
        """
        facts, groups = read_state(path)
        values: Dict[str, Any] = {"optimizer": {}, **facts, **groups}
        try:
            return cls(**values)
        except TypeError as error:
            raise UserError(f"{path} is no checkpoint of a pre-training ({error})") from error

    @classmethod
    def share(
        cls, state: Optional[PretrainingState], workers: Workers
    ) -> Optional[PretrainingState]:
        """Rank 0's state on every worker, array by array, since it may be large."""
        facts = workers.broadcast(state and state._facts())
        if facts is None:
            return None
        weights, optimizer = (
            _share(getattr(state, group, {}), group, workers) for group in ("weights", "optimizer")
        )
        return cls(weights=weights, optimizer=optimizer, **facts)

    def _facts(self) -> Dict[str, Any]:
        """All but the arrays."""
        return {
            "step": self.step,
            "seconds": self.seconds,
            "fingerprint": self.fingerprint,
            "num_workers": self.num_workers,
        }


def _share(arrays: Arrays, group: str, workers: Workers) -> Arrays:
    """Rank 0's arrays; what the others give is not looked at."""
    kinds = workers.broadcast({name: (a.shape, a.dtype.name) for name, a in arrays.items()})
    shared: Arrays = {}
    for name in sorted(kinds):
        shape, dtype = kinds[name]
        mine = arrays[name] if workers.is_first else np.zeros(shape, dtype)
        array = mx.nd.array(np.reshape(mine, (-1,)), dtype=dtype)  # a scalar has no shape in MXNet
        workers.broadcast_array(array, f"{group}.{name}")
        shared[name] = array.asnumpy().reshape(shape)
    return shared
