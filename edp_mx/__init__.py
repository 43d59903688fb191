"""Differentially private training of intent-and-slot models with eDP-SGD."""

from edp_mx.processor import tell_openblas

tell_openblas()  # before anything imports mxnet
