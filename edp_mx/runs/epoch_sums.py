"""Sums over the steps of an epoch for the log, kept when the run is interrupted in it."""

from __future__ import annotations

import logging
import math
from dataclasses import astuple
from typing import Any, Dict

import numpy as np

from edp_mx.dp.privacy.clipping import ClippingStatistics
from edp_mx.errors import UserError
from edp_mx.runtime.console_text import count_of
from edp_mx.runtime.distributed import Workers
from edp_mx.runtime.npz import Arrays
from edp_mx.training.loop import EpochSoFar, TrainingLoop
from edp_mx.training.state import TrainingState

logger = logging.getLogger(__name__)


def clipping_of(loop: TrainingLoop, unit: str) -> Dict[str, Any]:
    """Return the clipping of an epoch by all workers, as columns of `metrics.jsonl`."""
    parts = loop.workers.gather(astuple(loop.mechanism.clipping.take_statistics()))
    total = ClippingStatistics(*map(sum, zip(*parts)))
    if total.non_finite:
        logger.warning(
            "%d of %d %s gradients were not finite and counted as zero; a smaller "
            "training.learning_rate may help",
            total.non_finite,
            total.units,
            unit.replace("_", "-"),
        )
    return total.as_metrics()


def sums_of(loop: TrainingLoop, so_far: EpochSoFar) -> Arrays:
    """Return the losses (N,) and clipping statistics (N, 4) so far, by worker."""
    statistics = astuple(loop.mechanism.clipping.statistics)
    found = loop.workers.gather((so_far.loss, statistics))
    losses, clipping = (np.array(column, np.float64) for column in zip(*found))
    return {"loss": losses, "clipping": clipping}  # (N,), (N, 4)


def begin_of(state: TrainingState, workers: Workers) -> EpochSoFar:
    """Return the place in the run at which this worker resumes."""
    if state.steps == 0:
        return EpochSoFar(state.epochs)
    losses = state.so_far["loss"]
    if len(losses) != workers.size:
        raise UserError(
            "the checkpoint was written in the middle of an epoch by "
            f"{count_of(len(losses), 'worker')}, and "
            f"{workers.size} would divide the rest of it otherwise; resume with NP={len(losses)}"
        )
    loss = float(losses[workers.rank])
    return EpochSoFar(state.epochs, state.steps, loss, state.epoch_seconds, math.nan)
