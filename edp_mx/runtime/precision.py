"""The number format in which the products of dense layers are computed."""

from __future__ import annotations

from edp_mx.runtime.blas import Processor

FULL, LOW = "float32", "bfloat16"
_COMPUTED_BY = {"avx512_bf16", "amx_bf16"}  # instructions, by Linux' names


def why_imitated(precision: str, processor: Processor) -> str:
    """Return why a processor would only imitate a format; "" if it computes in it."""
    if precision == FULL or _COMPUTED_BY & processor.flags:
        return ""
    return (
        f"the processor has none of the instructions for {precision} "
        f"({' or '.join(sorted(_COMPUTED_BY))}) and would imitate them more slowly"
    )
