"""Averaged weights: less of the noise of the single steps, at no cost in ε (post-processing)."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Iterator, List

import mxnet as mx
import numpy as np
from mxnet import gluon

from edp_mx.runtime.arrays import overwrite
from edp_mx.runtime.npz import Arrays


class WeightAverage:
    """An exponential moving average of trained weights.

    The average is only read: training goes on from the last weights.

    Args:
        decay: the share of the average that is kept at each step; less at the beginning.

    Source: De et al. 2022 ("Unlocking high-accuracy differentially private image classification"),
    section 3.4, with its warm-up.
    """

    def __init__(self, parameters: List[gluon.Parameter], *, decay: float) -> None:
        self._parameters = {parameter.name: parameter for parameter in parameters}
        self._decay = decay
        self._values: Arrays = {}

    def add(self, step: int) -> None:
        """Add the weights after a step, from 0."""
        mx.nd.waitall()
        share = np.float32(1 - min(self._decay, (1 + step) / (10 + step)))
        for name, parameter in self._parameters.items():
            weights = parameter.data().asnumpy()  # a copy
            if name not in self._values:
                self._values[name] = weights
            else:
                self._values[name] += share * (weights - self._values[name])

    @property
    def values(self) -> Arrays:
        """The averages by parameter; empty before the first step."""
        return self._values

    def resume(self, values: Arrays) -> None:
        """Go on from earlier `values`."""
        self._values = {name: array.copy() for name, array in values.items()}

    def apply(self) -> None:
        """Replace the weights by their averages, as far as there are any."""
        self._set(self._values)

    def _set(self, weights: Arrays) -> None:
        for name, values in weights.items():
            overwrite(self._parameters[name], values)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Replace the weights by their averages for a while."""
        last = {name: self._parameters[name].data().asnumpy() for name in self._values}
        self.apply()
        try:
            yield
        finally:
            self._set(last)
