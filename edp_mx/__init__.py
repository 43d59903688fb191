"""Differentially private training of intent-and-slot models with eDP-SGD."""

import os

from edp_mx.runtime.threads import allowed_threads

# From so many summands on MXNet has gradients added in place; it reads this before its first one.
# Operators of a library (`models/quick/native`) are not told to add, and would overwrite.
os.environ["MXNET_EXEC_INPLACE_GRAD_SUM_CAP"] = str(2**30)

# Workers that horovodrun started by itself share the cores, as launch/environment.sh has it: MXNet
# and NumPy read this when they are imported, and would take all cores each.
if "HOROVOD_LOCAL_SIZE" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", str(allowed_threads()))
