"""One training step of each variant: mechanism, trainer, and what comes before its step."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from typing import Callable, Dict, Optional, Tuple

import mxnet as mx
from subjects import FAMILIES as FAMILIES
from subjects import Subject, mean_gradient

from edp_mx.accounting.decay import Decay
from edp_mx.accounting.release import Release
from edp_mx.privacy.clipping import LoopClipping, PerExampleClipping
from edp_mx.privacy.dp_sgd import DPSGD
from edp_mx.privacy.ghost.clipping import GhostClipping
from edp_mx.privacy.mechanism import EDPSGD, Mechanism
from edp_mx.privacy.noise import NoiseStream
from edp_mx.privacy.trainer import PrivateTrainer

LEARNING_RATE = 1e-6  # the weights stay where they are, whatever the noise
NOISE_MULTIPLIER = MAX_GRAD_NORM = 1.0


@dataclass(frozen=True, eq=False)
class Variant:
    """One way to train.

    Attributes:
        prepare: forward and backward (and clipping of examples): all that comes before
            `trainer.step_private`.
    """

    subject: Subject
    mechanism: Optional[Mechanism]
    trainer: PrivateTrainer
    prepare: Callable[[], object]

    def step(self) -> float:
        """One whole step; returns its seconds."""
        started = time.perf_counter()
        self.prepare()
        self.trainer.step_private(epoch=0)
        mx.nd.waitall()
        return time.perf_counter() - started


def sgd(subject: Subject) -> Variant:
    """Adam on the plain gradient."""
    return Variant(subject, None, _trainer(subject, None), lambda: mean_gradient(subject))


def edp_sgd(subject: Subject) -> Variant:
    """The micro-batch's mean gradient clipped and noised, then Adam."""
    mechanism = EDPSGD(
        release=_release(subject, clips="micro_batch"),
        noise_multiplier=NOISE_MULTIPLIER,
        decay=Decay(),
        flat=subject.flat,
        noise=NoiseStream.from_operating_system(),
    )
    trainer = _trainer(subject, mechanism)
    return Variant(subject, mechanism, trainer, lambda: mean_gradient(subject))


def dp_sgd_ghost(subject: Subject) -> Variant:
    """Every example clipped, by ghost clipping in one pass."""
    clipping = GhostClipping(
        flat=subject.flat,
        network=subject.model,
        max_grad_norm=MAX_GRAD_NORM,
        layer_scales=_ones(subject),
        chunk_size=len(subject.batch),
    )
    return _dp_sgd(subject, clipping)


def dp_sgd_loop(subject: Subject) -> Variant:
    """Every example clipped, one backward pass each: the paper's way."""
    clipping = LoopClipping(
        flat=subject.flat, max_grad_norm=MAX_GRAD_NORM, layer_scales=_ones(subject)
    )
    return _dp_sgd(subject, clipping)


# Both benchmarks take their variants from this table.
VARIANTS: Dict[str, Callable[[Subject], Variant]] = {
    "sgd": sgd,
    "edp_sgd": edp_sgd,
    "dp_sgd_ghost": dp_sgd_ghost,
    "dp_sgd_loop": dp_sgd_loop,
}


def settle_threads() -> None:
    """Starts the script anew with OMP_NUM_THREADS, if it is not set: MXNet takes half the cores."""
    if "OMP_NUM_THREADS" not in os.environ:
        share = int(os.environ.get("HOROVOD_LOCAL_SIZE", "1"))
        threads = max(1, (os.cpu_count() or 1) // share)
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
        os.execve(sys.executable, [sys.executable, *sys.argv], environment)


def _dp_sgd(subject: Subject, clipping: PerExampleClipping) -> Variant:
    mechanism = DPSGD(
        release=_release(subject, clips="example"),
        noise_multiplier=NOISE_MULTIPLIER,
        decay=Decay(),
        flat=subject.flat,
        noise=NoiseStream.from_operating_system(),
        clipping=clipping,
    )
    trainer = _trainer(subject, mechanism)
    size = clipping.chunk_size
    return Variant(subject, mechanism, trainer, lambda: clipping.clip(subject.chunks(size)))


def _ones(subject: Subject) -> Tuple[float, ...]:
    return (1.0,) * len(subject.flat.layers)


def _release(subject: Subject, *, clips: str) -> Release:
    return Release(
        num_workers=subject.workers.size,
        micro_batch_size=len(subject.batch),
        max_grad_norm=MAX_GRAD_NORM,
        layer_scales=_ones(subject),
        adjacency="replace_one",
        variant="calibrated",
        clips=clips,
    )


def _trainer(subject: Subject, mechanism: Optional[Mechanism]) -> PrivateTrainer:
    return PrivateTrainer(
        flat=subject.flat,
        optimizer="adam",
        optimizer_params={"learning_rate": LEARNING_RATE},
        mechanism=mechanism,
    )
