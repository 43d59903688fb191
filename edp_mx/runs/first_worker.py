"""What only the first worker does, with the same outcome for all."""

from __future__ import annotations

from typing import Callable, TypeVar

from edp_mx.errors import UserError
from edp_mx.runtime.distributed import Workers

T = TypeVar("T")


def on_first_worker(workers: Workers, compute: Callable[[], T]) -> T:
    """Computes on rank 0; every worker returns its value.

    Raises:
        UserError: rank 0's own, on every worker: one that failed alone would leave the others
            waiting.
    """
    value, refusal = None, None
    if workers.is_first:
        try:
            value = compute()
        except UserError as error:
            refusal = str(error)
    value, refusal = workers.broadcast((value, refusal))
    if refusal is not None:
        raise UserError(refusal, is_shared=True)
    return value
