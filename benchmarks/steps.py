"""One training step of each variant: mechanism, trainer, and what comes before its step."""

from typing import Any, Callable, Dict, List, Sequence

import mxnet as mx
import numpy as np
from measuring import timed
from mxnet import autograd
from subjects import SLOTS, Subject

from edp_mx.dp.accounting.decay import Decay
from edp_mx.dp.accounting.plan import Plan
from edp_mx.dp.accounting.release import Release
from edp_mx.dp.privacy.build_clipping import clipping_for
from edp_mx.dp.privacy.clipping import Losses, Unclipped
from edp_mx.dp.privacy.mechanism import AnyMechanism, Mechanism, WithoutPrivacy
from edp_mx.dp.privacy.noise import NoiseStream
from edp_mx.dp.privacy.norm_clipping import LoopClipping, NormClipping
from edp_mx.dp.privacy.trainer import PrivateTrainer
from edp_mx.models.rgp import carried_weights
from edp_mx.models.rgp_trainer import CarriedTrainer

SGEMM_SIZE = 1536
SGEMM_FLOPS = 2.0 * SGEMM_SIZE**3
LEARNING_RATE = 1e-6  # the weights stay where they are, whatever the noise
NOISE_MULTIPLIER = MAX_GRAD_NORM = 1.0

TRAINED = ("heads", "biases", "lora", "rgp", "prefix")  # `model.trained`
TOP_2 = {"frozen_layers": -2, "is_embedding_trainable": False}  # all layers but two

Step = Callable[[], float]  # takes one whole step and returns its seconds


def sgd(subject: Subject) -> Step:
    """Adam on the plain gradient."""
    mechanism = WithoutPrivacy(clipping=Unclipped(flat=subject.flat))
    return _step(subject, mechanism, lambda: [subject.mean_loss])


def edp_sgd(subject: Subject) -> Step:
    """The micro-batch's mean gradient clipped and noised, then Adam."""
    mechanism = _mechanism(LoopClipping(**_clipping(subject, "micro_batch")))
    return _step(subject, mechanism, lambda: [subject.mean_loss])


def edp_sgd_hardened(subject: Subject) -> Step:
    """The same with hardened noise."""
    clipping = LoopClipping(**_clipping(subject, "micro_batch"))
    mechanism = _mechanism(clipping, gaussian="hardened")
    return _step(subject, mechanism, lambda: [subject.mean_loss])


def dp_sgd_ghost(subject: Subject, kind: str = "ghost") -> Step:
    """Every example clipped, by ghost clipping in one pass."""
    given, size = _clipping(subject), len(subject.batch)
    return _dp_sgd(subject, clipping_for(kind, **given, network=subject.model, chunk_size=size))


def dp_sgd_ghost_bfloat16(subject: Subject) -> Step:
    """The same with the products of dense layers in bfloat16."""
    return dp_sgd_ghost(subject, "ghost_bfloat16")


def dp_sgd_loop(subject: Subject) -> Step:
    """Every example clipped, one backward pass each, as in the paper."""
    return _dp_sgd(subject, LoopClipping(**_clipping(subject)))


def crf(subject: Subject) -> Step:
    """The loss of the CRF and its gradient alone, without the network and the update."""
    batch = subject.batch
    emissions = mx.nd.random.normal(shape=(len(batch), batch.slots.shape[1], SLOTS))  # (N, T, K)
    emissions.attach_grad()

    def work() -> None:
        with autograd.record():
            loss = subject.model.slot.crf(emissions, batch.slots, batch.lengths).sum()
        loss.backward()

    return timed(work)


def privacy(subject: Subject) -> Step:
    """The norm, the factor and the noise of eDP-SGD alone, without both passes and the update."""
    clipping = LoopClipping(**_clipping(subject, "micro_batch"))
    clipping._backward = lambda losses: losses()  # noqa: SLF001 (the gradients stay)
    mechanism = _mechanism(clipping)
    return timed(lambda: mechanism.privatise([lambda: mx.nd.zeros(1)], epoch=0))


def sgemm(multiply: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Step:
    """One large product of a library: what the processor can do. See `SGEMM_FLOPS`."""
    sides = np.random.default_rng(0).normal(size=(2, SGEMM_SIZE, SGEMM_SIZE)).astype(np.float32)
    left, right = map(np.asfortranarray, sides)
    return timed(lambda: multiply(left, right))


VARIANTS: Dict[str, Callable[[Subject], Step]] = {
    variant.__name__: variant
    for variant in (sgd, edp_sgd, edp_sgd_hardened, dp_sgd_ghost, dp_sgd_loop, crf, privacy)
}
USUAL = tuple(VARIANTS)  # for both families
ROUNDED = dp_sgd_ghost_bfloat16.__name__  # not every processor has it
# Ghost clipping where a part of a transformer is trained: the settings of its model.
PARTS: Dict[str, Dict[str, Any]] = {
    **{f"dp_sgd_{trained}": {"trained": trained} for trained in TRAINED},
    "dp_sgd_top_2": TOP_2,
    "dp_sgd_heads_stored": {"trained": "heads"},
    "dp_sgd_top_2_stored": TOP_2,
}
VARIANTS.update(dict.fromkeys(PARTS, dp_sgd_ghost))
VARIANTS[ROUNDED] = dp_sgd_ghost_bfloat16


def variants_of(family: str, asked: Sequence[str]) -> List[str]:
    """Return SGD and what is asked for, as far as a family has it, in order."""
    lacks = ("crf", "dp_sgd_heads", "dp_sgd_heads_stored") if family == "gpt2" else ()
    return [name for name in VARIANTS if name in {*asked, "sgd"} and name not in lacks]


def _clipping(subject: Subject, unit: str = "utterance") -> dict:
    return {"flat": subject.flat, "release": _release(subject, unit)}


def _dp_sgd(subject: Subject, clipping: NormClipping) -> Step:
    mechanism = _mechanism(clipping)
    return _step(subject, mechanism, lambda: list(subject.chunks(clipping.chunk_size)))


def _release(subject: Subject, unit: str) -> Release:
    return Release(
        unit=unit,
        num_workers=subject.workers.size,
        micro_batch_size=len(subject.batch),
        max_grad_norm=MAX_GRAD_NORM,
        layer_scales=(1.0,) * len(subject.flat.layers),
        adjacency="replace_one",
        variant="calibrated",
    )


def _mechanism(clipping: NormClipping, *, gaussian: str = "plain") -> Mechanism:
    plan = Plan(
        clipping.release,
        noise_multiplier=NOISE_MULTIPLIER,
        decay=Decay(),
        epochs=1,
        delta=1e-5,
        gaussian=gaussian,
    )
    noise = NoiseStream.from_operating_system(gaussian=gaussian)
    return Mechanism(plan=plan, clipping=clipping, noise=noise)


def _step(subject: Subject, mechanism: AnyMechanism, chunks: Callable[[], List[Losses]]) -> Step:
    """Forward, backward, clipping, noise and the trainer's step."""
    settings: Dict[str, Any] = {
        "flat": subject.flat,
        "optimizer": "adam",
        "optimizer_params": {"learning_rate": LEARNING_RATE},
    }
    carried = carried_weights(subject.model)
    trainer = (
        CarriedTrainer(carried=carried, workers=subject.workers, **settings)
        if carried
        else PrivateTrainer(**settings)
    )
    return timed(lambda: trainer.step_private(mechanism.privatise(chunks(), epoch=0)))
