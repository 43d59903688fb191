"""The number format in which the products of dense layers are computed."""

from __future__ import annotations

from edp_mx.errors import UserError
from edp_mx.runtime.blas import Processor

FULL, LOW = "float32", "bfloat16"
_COMPUTED_BY = {"avx512_bf16", "amx_bf16"}  # instructions, by Linux' names


def refuse_imitated(precision: str, processor: Processor) -> None:
    """Refuse a format that a processor would only imitate."""
    if precision != FULL and not _COMPUTED_BY & processor.flags:
        raise UserError(
            f"this processor has none of the instructions for {precision} "
            f"({' or '.join(sorted(_COMPUTED_BY))}) and would imitate them more slowly; "
            "set privacy.clipping: ghost"
        )
