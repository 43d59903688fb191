"""Whether a network mixes the examples of a batch, before ghost clipping is trusted with it."""

from __future__ import annotations

from typing import Any, Callable

import mxnet as mx
import numpy as np
from mxnet import autograd

from edp_mx.dp.privacy.ghost.graph import unfit
from edp_mx.dp.unit_losses import seed_dropout


def refuse_mixing(
    loss_of: Callable[[Any], mx.nd.NDArray],
    arrays_of: Callable[[np.ndarray], Any],
    records: np.ndarray,
) -> None:
    """Refuse a network that mixes examples while it is trained, though not while it predicts.

    The loss of no record (R,) may depend on another's: each takes the place of its neighbour once,
    under the same dropout masks. Where a batch then has other shapes, whose masks differ, nothing
    is told here; `refuse_wrong_on` compares such lengths without dropout.

    `loss_of` computes the losses (R,) of what `arrays_of` makes of some records (R,): their number
    and their arrays.
    """

    def losses(batch: Any) -> np.ndarray:
        seed_dropout(0)
        with autograd.record():
            made = loss_of(batch)
        return made.asnumpy()

    for place in range(len(records) - 1):
        other = records.copy()
        other[place] = records[place + 1]
        batches = arrays_of(records), arrays_of(other)
        shapes = [[array.shape for array in arrays] for _, arrays in batches]
        before, after = (np.delete(losses(batch), place) for batch in batches)
        if shapes[0] == shapes[1] and not np.allclose(before, after, rtol=1e-4, atol=1e-6):
            raise unfit(
                "the loss of an example depends on the other examples of its batch, such as by "
                "their mean"
            )
