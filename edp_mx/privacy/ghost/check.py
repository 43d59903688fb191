"""Ghost clipping held against the loop before it is trusted with a network."""

from __future__ import annotations

from typing import Sequence

import numpy as np

from edp_mx.errors import UserError
from edp_mx.privacy.clipping import ClippingStatistics, LoopClipping, Losses
from edp_mx.privacy.flat import FlatGradients, sum_of_squares
from edp_mx.privacy.ghost.clipping import GhostClipping

TOLERANCE = 1e-3  # relative; float32 leaves 1e-6


def refuse_wrong(
    ghost: GhostClipping,
    *,
    flat: FlatGradients,
    max_grad_norm: float,
    layer_scales: Sequence[float],
    together: Sequence[Losses],
    alone: Sequence[Losses],
) -> None:
    """Refuses a network for which ghost clipping gives other norms or sums than the loop.

    A network can be built in ways that no rule foresees (rows of several examples interleaved, a
    value that reaches another example), and a norm that comes out low would be a silent breach.

    Args:
        ghost: for the network; its statistics are left at zero.
        flat, max_grad_norm, layer_scales: those of `ghost`.
        together: the losses (n,) of examples of different lengths, which hold nothing private, with
            dropout off; in chunks as `ghost` takes them.
        alone: the loss (1,) of each of them without the others.

    Raises:
        UserError: they differ; the parameter that differs most is named.
    """
    loop = LoopClipping(flat=flat, max_grad_norm=max_grad_norm, layer_scales=layer_scales)
    loop.clip(alone)
    expected, norms = loop.take(), loop.statistics.norm_sum
    ghost.clip(together)
    found, ghost_norms = ghost.take(), ghost.statistics.norm_sum
    ghost.statistics = ClippingStatistics()
    flat.mark(is_fresh=False)  # what was clipped here must not train
    room = TOLERANCE * np.sqrt(sum_of_squares(expected))
    difference = flat.views(found - expected)
    distances = {name: np.sqrt(sum_of_squares(part)) for name, part in difference.items()}
    worst = max(distances, key=distances.__getitem__)
    if not (distances[worst] <= room and abs(ghost_norms - norms) <= TOLERANCE * norms):
        raise UserError(
            f"ghost clipping and the loop disagree on this network (norms {ghost_norms:.6g} and "
            f"{norms:.6g} in all; the clipped sums differ by {distances[worst]:.3g} in {worst}): "
            "set privacy.per_example: loop"
        )
