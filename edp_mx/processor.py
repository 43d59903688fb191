"""What the linear algebra under MXNet should know of this processor."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Optional

_CPUINFO = Path("/proc/cpuinfo")
_VARIABLE = "OPENBLAS_CORETYPE"
# What a processor must have for the kernels of a core type: the best first.
_CORES = {
    "SkylakeX": {"avx512f", "avx512dq", "avx512bw", "avx512vl", "avx2", "fma"},
    "Haswell": {"avx2", "fma"},
}


def tell_openblas() -> None:
    """Names the core type to OpenBLAS, unless the user has.

    The copy inside MXNet is older than many processors: what it does not know it treats as one of
    2004. Its products are a third of a BERT's attention. NumPy's own copy takes the same hint.
    Once mxnet is imported it is too late, and nothing is changed.
    """
    if _VARIABLE in os.environ or "mxnet" in sys.modules:
        return
    core = core_type(_flags())
    if core is not None:
        os.environ[_VARIABLE] = core


def core_type(flags: frozenset) -> Optional[str]:
    """The best of OpenBLAS's core types that a processor with these flags can run.

    Example:
        >>> core_type(frozenset({"sse2", "avx2", "fma"}))
        'Haswell'
    """
    return next((core for core, needed in _CORES.items() if needed <= flags), None)


def _flags() -> frozenset:
    """Those of the first processor, where the system tells them."""
    try:
        with open(_CPUINFO, encoding="utf-8") as lines:  # one of a hundred processors is enough
            return frozenset(next((line for line in lines if line.startswith("flags")), "").split())
    except OSError:
        return frozenset()
