"""Averaged weights: less of the noise of the single steps, at no cost in ε (post-processing)."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Iterator, List

import mxnet as mx
import numpy as np
from mxnet import gluon

from edp_mx.runtime.arrays import overwrite
from edp_mx.runtime.npz import Arrays
from edp_mx.training.config import Average


class WeightAverage:
    """A running average of trained weights.

    The average is only read: training goes on from the last weights.

    Args:
        parameters: that are trained.
        config: which steps count how much.
        total_steps: of the whole run.

    Source: De et al. 2022 ("Unlocking high-accuracy differentially private image classification"),
    section 3.4, for the exponential average and its warm-up; Polyak and Juditsky 1992 for the mean
    of the last steps.
    """

    def __init__(
        self, parameters: List[gluon.Parameter], config: Average, *, total_steps: int
    ) -> None:
        self._parameters = {parameter.name: parameter for parameter in parameters}
        self._config = config
        self._values: Arrays = {}
        self._first = round((1 - config.tail_fraction) * total_steps)

    def add(self, step: int) -> None:
        """Add the weights after a step, from 0; a step before the tail adds nothing."""
        if self._config.kind == "tail" and step < self._first:
            return
        mx.nd.waitall()
        for name, parameter in self._parameters.items():
            weights = parameter.data().asnumpy()  # a copy
            if name not in self._values:
                self._values[name] = weights
            else:
                self._values[name] += self._share(step) * (weights - self._values[name])

    def _share(self, step: int) -> np.float32:
        """The share of a step's weights in the average after it."""
        if self._config.kind == "tail":
            return np.float32(1 / (step - self._first + 1))
        return np.float32(1 - min(self._config.decay, (1 + step) / (10 + step)))

    @property
    def values(self) -> Arrays:
        """The averages by parameter; empty before the first step that counts."""
        return self._values

    def resume(self, values: Arrays) -> None:
        """Go on from what `values` was."""
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
