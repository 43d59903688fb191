"""Differentially private training of intent-and-slot models with eDP-SGD."""

import os

# From so many summands on MXNet has gradients added in place; it reads this before its first one.
# Operators of a library (`models/quick/operators.cc`) are not told to add, and would overwrite.
os.environ["MXNET_EXEC_INPLACE_GRAD_SUM_CAP"] = str(2**30)
