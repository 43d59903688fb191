"""One side of `epoch_time.py`: trains one configuration for an epoch, some steps at a time.

The code is that of the folder that PYTHONPATH begins with, whichever commit it is of: all that is
asked of it is `train` and `PrivateTrainer.step_private`. The training itself is left as it is;
between two steps this side says how long the last ones took, and waits until it may go on.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Iterable, Iterator, Optional

import mxnet as mx
from sides import Connection, connected

from edp_mx.config import load_config
from edp_mx.privacy.trainer import PrivateTrainer
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runs.train import train
from edp_mx.runtime import distributed


class Turns:
    """What happens between steps; the side is ready after the first, which is in no turn."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._connection: Optional[Connection] = None
        self._orders: Iterator[int] = iter(())
        self._left = 1  # steps of this turn
        self._started = 0.0
        self._steps = 0  # of the epoch

    def progress(self, batches: Iterable[Any], _: str, total: int) -> Iterable[Any]:
        """Learns how many steps an epoch has."""
        self._steps = total
        return batches

    def after_step(self) -> None:
        """Goes on, or waits for the next turn.

        Raises:
            SystemExit: there is none.
        """
        self._left -= 1
        if self._left:
            return
        mx.nd.waitall()
        seconds = time.perf_counter() - self._started
        if self._connection is None:
            self._connection = connected(self._address, {"steps": self._steps})
            self._orders = self._connection.orders()
        else:
            self._connection.send(seconds)
        self._left = next(self._orders, 0)
        if not self._left:
            raise SystemExit
        self._started = time.perf_counter()


def main(*arguments: str) -> None:
    """Trains until nobody asks for more."""
    *files, address = arguments
    turns = Turns(address)
    step_private = PrivateTrainer.step_private

    def step(trainer: PrivateTrainer, *what: Any, **how: Any) -> None:
        step_private(trainer, *what, **how)  # older commits are told the epoch
        turns.after_step()

    PrivateTrainer.step_private = step  # type: ignore[method-assign,assignment]
    settings = load_config(files if len(files) > 1 else files[0], ["training.epochs=1"])
    with tempfile.TemporaryDirectory() as folder:
        train(settings, distributed.start(), RunDirectory(Path(folder)), turns.progress)


if __name__ == "__main__":
    main(*sys.argv[1:])
