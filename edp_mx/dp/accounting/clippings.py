"""How the gradients of units are clipped: what an accountant and a reader must know of each way.

To add a way: its class, its name here, and its name in `privacy.build_clipping`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, Tuple

from edp_mx.dp.accounting.coverage import MASKS, SUMS


@dataclass(frozen=True)
class ClippingWay:
    """One way of clipping; ε is the same for all.

    Attributes:
        takes_many: many units are clipped from one backward pass.
        not_covered: what its ε rests on besides.
    """

    takes_many: bool = False
    not_covered: Tuple[str, ...] = ()


CLIPPINGS: Dict[str, ClippingWay] = {
    "loop": ClippingWay(),
    "ghost": ClippingWay(takes_many=True, not_covered=(MASKS, SUMS)),
}
