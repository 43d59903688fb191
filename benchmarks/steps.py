"""One training step of each variant: mechanism, trainer, and what comes before its step."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from functools import partial
from typing import Callable, Dict, List, Tuple

import mxnet as mx
from subjects import FAMILIES as FAMILIES
from subjects import Subject

from edp_mx.accounting.decay import Decay
from edp_mx.accounting.plan import Plan
from edp_mx.accounting.release import Release
from edp_mx.privacy.clipping import Losses, Unclipped
from edp_mx.privacy.ghost.clipping import GhostClipping
from edp_mx.privacy.mechanism import AnyMechanism, Mechanism, Released, WithoutPrivacy
from edp_mx.privacy.noise import NoiseStream
from edp_mx.privacy.norm_clipping import LoopClipping, NormClipping
from edp_mx.privacy.trainer import PrivateTrainer

LEARNING_RATE = 1e-6  # the weights stay where they are, whatever the noise
NOISE_MULTIPLIER = MAX_GRAD_NORM = 1.0


@dataclass(frozen=True, eq=False)
class Variant:
    """One way to train.

    Attributes:
        chunks: of the losses of a step's units, as `mechanism` takes them.
    """

    subject: Subject
    mechanism: AnyMechanism
    trainer: PrivateTrainer
    chunks: Callable[[], List[Losses]]

    def privatise(self) -> Released:
        """Forward, backward, clipping and noise: all that comes before the trainer's step."""
        return self.mechanism.privatise(self.chunks(), epoch=0)

    def step(self) -> float:
        """One whole step; returns its seconds."""
        started = time.perf_counter()
        self.trainer.step_private(self.privatise())
        mx.nd.waitall()
        return time.perf_counter() - started


def sgd(subject: Subject) -> Variant:
    """Adam on the plain gradient."""
    mechanism = WithoutPrivacy(clipping=Unclipped(flat=subject.flat))
    return Variant(subject, mechanism, _trainer(subject), lambda: [subject.mean_loss])


def edp_sgd(subject: Subject) -> Variant:
    """The micro-batch's mean gradient clipped and noised, then Adam."""
    mechanism = _mechanism(subject, _loop(subject), unit="micro_batch")
    return Variant(subject, mechanism, _trainer(subject), lambda: [subject.mean_loss])


def edp_sgd_8_loop(subject: Subject) -> Variant:
    """Eight micro-batches clipped, by a backward pass each; eDP-SGD on one worker as on eight."""
    mechanism = _mechanism(subject, _loop(subject), unit="micro_batch", count=8)
    rows = len(subject.batch) // 8
    return Variant(
        subject,
        mechanism,
        _trainer(subject),
        lambda: [partial(_means, losses, 1) for losses in subject.chunks(rows)],
    )


def edp_sgd_8_ghost(subject: Subject) -> Variant:
    """The same by ghost clipping in one pass, whose examples are the micro-batches."""
    mechanism = _mechanism(subject, _ghost(subject), unit="micro_batch", count=8)
    return Variant(
        subject, mechanism, _trainer(subject), lambda: [partial(_means, subject.losses, 8)]
    )


def dp_sgd_ghost(subject: Subject) -> Variant:
    """Every example clipped, by ghost clipping in one pass."""
    return _dp_sgd(subject, _ghost(subject))


def dp_sgd_loop(subject: Subject) -> Variant:
    """Every example clipped, one backward pass each: the paper's way."""
    return _dp_sgd(subject, _loop(subject))


# Both benchmarks take their variants from this table.
VARIANTS: Dict[str, Callable[[Subject], Variant]] = {
    "sgd": sgd,
    "edp_sgd": edp_sgd,
    "edp_sgd_8_loop": edp_sgd_8_loop,
    "edp_sgd_8_ghost": edp_sgd_8_ghost,
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


def _loop(subject: Subject) -> LoopClipping:
    return LoopClipping(flat=subject.flat, max_grad_norm=MAX_GRAD_NORM, layer_scales=_ones(subject))


def _ghost(subject: Subject) -> GhostClipping:
    return GhostClipping(
        flat=subject.flat,
        network=subject.model,
        max_grad_norm=MAX_GRAD_NORM,
        layer_scales=_ones(subject),
        chunk_size=len(subject.batch),
    )


def _means(losses: Losses, units: int) -> mx.nd.NDArray:
    """The mean losses (U,) of micro-batches whose examples follow one another."""
    return losses().reshape((units, -1)).mean(axis=1)


def _dp_sgd(subject: Subject, clipping: NormClipping) -> Variant:
    mechanism = _mechanism(subject, clipping, unit="utterance")
    size = clipping.chunk_size
    return Variant(subject, mechanism, _trainer(subject), lambda: list(subject.chunks(size)))


def _mechanism(subject: Subject, clipping: NormClipping, *, unit: str, count: int = 1) -> Mechanism:
    plan = Plan(
        _release(subject, unit=unit, count=count),
        noise_multiplier=NOISE_MULTIPLIER,
        decay=Decay(),
        epochs=1,
        delta=1e-5,
    )
    return Mechanism(plan=plan, clipping=clipping, noise=NoiseStream.from_operating_system())


def _ones(subject: Subject) -> Tuple[float, ...]:
    return (1.0,) * len(subject.flat.layers)


def _release(subject: Subject, *, unit: str, count: int) -> Release:
    return Release(
        unit=unit,
        num_workers=subject.workers.size,
        micro_batches_per_worker=count,
        micro_batch_size=len(subject.batch) // count,
        max_grad_norm=MAX_GRAD_NORM,
        layer_scales=_ones(subject),
        adjacency="replace_one",
        variant="calibrated",
    )


def _trainer(subject: Subject) -> PrivateTrainer:
    return PrivateTrainer(
        flat=subject.flat, optimizer="adam", optimizer_params={"learning_rate": LEARNING_RATE}
    )
