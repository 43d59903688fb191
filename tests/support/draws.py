"""Samplers that draw what they are told to."""

import numpy as np

from edp_mx.dp.sampling.draws import Draw


class GivenDraws:
    """Stands for a sampler: the same draws in each epoch.

    `draws`: for each step a list of units, each a list of records.
    """

    sampler, sample_rate = "shuffle", 1.0

    def __init__(self, *draws, unit="micro_batch", size=1.0, k=1):
        self._draws, self.steps_per_epoch = draws, len(draws)
        self.unit, self.micro_batch_size, self.micro_batches_per_worker = unit, size, k

    def draws(self, epoch):
        return map(draw_of, self._draws)


def draw_of(units):
    records = [np.asarray(unit, np.int64) for unit in units]
    sizes = np.array([len(unit) for unit in records], np.int64)
    return Draw(np.concatenate([np.empty(0, np.int64), *records]), sizes)


def singly(records):
    """A unit for each record."""
    return [[record] for record in records]
