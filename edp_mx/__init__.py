"""Differentially private training of models that label or write texts.

`train`, `load`, `predict`, `account` and `attack` do from Python what the commands do;
`make_plan` and `PrivateTraining` train a Gluon network of one's own.
"""

import os
from typing import TYPE_CHECKING, Any

from edp_mx.errors import UserError
from edp_mx.runtime.blas import name_kernels

if TYPE_CHECKING:
    from edp_mx.api import account, attack, load, predict, train
    from edp_mx.dp import PrivateTraining, make_plan

__all__ = [
    "PrivateTraining", "UserError", "account", "attack", "load", "make_plan", "predict", "train"
]  # fmt: skip

# From so many summands on MXNet has gradients added in place; it reads this before its first one.
# Operators of a library (`models/quick/native`) are not told to add, and would overwrite.
os.environ["MXNET_EXEC_INPLACE_GRAD_SUM_CAP"] = str(2**30)

# Workers that horovodrun started by itself share the cores, as launch/environment.sh has it: MXNet
# and NumPy read this when they are imported, and would take all cores each.
if "HOROVOD_LOCAL_SIZE" in os.environ:
    from edp_mx.runtime.threads import allowed_threads

    os.environ.setdefault("OMP_NUM_THREADS", str(allowed_threads()))

name_kernels()

# OpenBLAS' threads would wait actively for 20 ms after each product, and take a core from what
# follows it: the noise took twice as long. Here it is 2¹⁶ ticks of the clock; read when loaded.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "16")


def __getattr__(name: str) -> Any:
    """Import the calls when the first of them is used; counting an ε must not pay for MXNet."""
    if name in ("PrivateTraining", "make_plan"):
        from edp_mx import dp

        return getattr(dp, name)
    if name in __all__:
        from edp_mx import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
