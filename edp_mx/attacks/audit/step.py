"""Audit A1: a membership attack on single steps of the real system, between worst neighbours."""

from __future__ import annotations

import itertools
from dataclasses import asdict, dataclass
from typing import Dict, Iterable, List, Tuple

import numpy as np

from edp_mx.attacks.audit.audited_step import AuditedStep
from edp_mx.attacks.audit.bounds import (
    ErrorCounts,
    epsilon_from_errors,
    epsilon_of_mu,
    mu_from_errors,
)
from edp_mx.attacks.audit.probe import Probe
from edp_mx.attacks.audit.verdict import Verdict
from edp_mx.dp.accounting.release import Release
from edp_mx.dp.sampling.draws import Draw, Sampler
from edp_mx.runtime.distributed import Workers
from edp_mx.runtime.progress import Progress, no_progress

BLOCK = 64  # coordinates of each layer in which one worker moves
OVERSHOOT = 1e4  # how far beyond C the gradients reach: only the clipping holds them


@dataclass(frozen=True)
class LayerAudit:
    """Outcome of the attack on layer k: a lower bound μ on sensitivity / noise.

    The means are of ⟨Δ, e⟩ in the world without and the world with.
    """

    layer: int
    scale: float
    counts: ErrorCounts
    mu: float
    means: Tuple[float, float]

    def describe(self) -> str:
        counts = self.counts
        return (
            f"  layer {self.layer} (alpha {self.scale:g}): false positives "
            f"{counts.false_positives} of {counts.negatives}, false negatives "
            f"{counts.false_negatives} of {counts.positives}, mu at least {self.mu:.3f}"
        )


def audit_step(
    workers: Workers,
    step: AuditedStep,
    *,
    draws: int = 1000,
    confidence: float = 0.95,
    claim: str = "holds",
    is_alone: bool = False,
    progress: Progress = no_progress,
) -> Verdict:
    """Attack real steps in two neighbouring worlds and bound ε by the errors of the attack.

    One record turns the mean of its micro-batch round, or is present or absent. In both worlds what
    is clipped lies far beyond C along a direction e of one layer, with opposite signs (for κ = 1:
    present or zero). The observer sees ⟨Δ, e⟩ of the aggregate and says "with" above a threshold
    that is fixed beforehand: the middle, or for Poisson steps, in which the record may not have
    been drawn, the noiseless release with the record. The layers with the largest and the smallest
    α are attacked.

    Every worker has its own e, orthogonal to the others', so that one step is a draw for each of
    them: to any one worker, the others are data that do not change.

    Args:
        workers: this worker among all; each calls this with the same arguments.
        draws: in each world and layer.
        claim: which accounting is audited, published or holds.
        is_alone: one worker at a time moves, and the gradients of the others are zero. N times
            slower, but finds leaks that the gradients of others drown.

    Guarantee: the bounds take the draws as independent. Shuffled, ε comes from a bound on μ, which
    takes the noise as Gaussian; A0 checks both. For Poisson steps it comes from the errors alone.
    The layers share the significance.

    Source: Nasr et al. (2021, 2023); Jagielski, Ullman and Oprea (2020); docs/privacy.md, section
    12.
    """
    delta = step.plan.delta
    probe = Probe(step, size=BLOCK * workers.size)
    scales = step.layer_scales
    chosen = sorted({int(np.argmax(scales)), int(np.argmin(scales))})
    significance = (1 - confidence) / len(chosen)
    plan = _plan(draws, workers.size, is_alone=is_alone)
    sampler = step.build_sampler(workers.rank)
    draws_of_epochs = (draw for epoch in itertools.count() for draw in sampler.draws(epoch))
    layers: List[LayerAudit] = []
    bounds = []
    for k in chosen:
        lengths = _worlds(probe.release, step, sampler)
        steps = zip(progress(plan, f"layer {k}", len(plan)), draws_of_epochs)
        seen = _observe(probe, workers, k, lengths, steps)
        layer = _judge(probe, seen[:, :draws], k, significance)
        layers.append(layer)
        bounds.append(
            epsilon_of_mu(layer.mu, delta=delta)
            if not step.release.draws.by_chance
            else epsilon_from_errors(layer.counts, delta=delta, significance=significance)
        )
    return Verdict(
        audit="step",
        bound=max(bounds),
        confidence=confidence,
        delta=delta,
        claim=claim,
        claims=step.claims(),
        details={"layers": [asdict(layer) for layer in layers]},
        said=tuple(layer.describe() for layer in layers),
    )


def _plan(draws: int, num_workers: int, *, is_alone: bool) -> List[Dict[int, int]]:
    """Return for each step the workers that move and the world, 0 or 1, of each.

    Each worker is equally often in either world, `draws` times in all or a few more.
    """
    turns = -(-draws // num_workers)
    if is_alone:
        return [{i: world} for _ in range(turns) for i in range(num_workers) for world in (0, 1)]
    return [{i: (i + s) % 2 for i in range(num_workers)} for s in range(2 * turns)]


def _observe(
    probe: Probe,
    workers: Workers,
    layer: int,
    lengths: np.ndarray,
    steps: Iterable[Tuple[Dict[int, int], Draw]],
) -> np.ndarray:
    """Return ⟨Δ, e⟩ in the world without and the world with, (2, draws) float64."""
    signs = np.where(np.arange(BLOCK) % 2 == 0, 1.0, -1.0) / np.sqrt(BLOCK)
    directions = np.kron(np.eye(workers.size), signs)  # e of each worker, (N, size)
    seen: Tuple[List[float], List[float]] = ([], [])
    for worlds, draw in steps:
        mine = worlds.get(workers.rank)
        along = np.zeros(len(draw.records)) if mine is None else lengths[mine, draw.records]  # (R,)
        examples = [
            np.outer(along, directions[workers.rank]) * (k == layer)
            for k in range(len(probe.release.layer_scales or ()))
        ]  # (R, size) each
        released = probe.released(examples, draw.sizes.tolist())[layer]
        for worker, world in worlds.items():
            seen[world].append(float(directions[worker] @ released))
    return np.array(seen)


def _worlds(release: Release, step: AuditedStep, sampler: Sampler) -> np.ndarray:
    """Return the gradient of each record along e in the worlds without and with, (2, records).

    What differs is the first record of this worker, or all utterances of its first user: absent
    (zero) or far along e; under replace-one far the other way where it is clipped by itself. In a
    clipped micro-batch all others pull the other way, and it outweighs them together.
    """
    own = sampler.indices
    first = own[: step.utterances_per_user] if release.clips.is_user else own[:1]
    far = OVERSHOOT * release.max_grad_norm * release.num_workers * release.micro_batch_size
    lengths = np.zeros((2, int(own[-1]) + 1))
    others = np.empty(0, np.int64)
    if release.clips.is_mean:
        lane = next(lane.indices for lane in sampler.lanes if first[0] in lane.indices)
        others = lane[lane != first[0]]
    lengths[:, others] = -far
    lengths[1, first] = far * (len(others) + 1)
    if len(others) == 0 and release.kappa == 2:
        lengths[0, first] = -far
    return lengths


def _judge(probe: Probe, seen: np.ndarray, layer: int, significance: float) -> LayerAudit:
    """Count the errors of the threshold, which the noiseless releases of both worlds set."""
    release = probe.release
    assert release.layer_scales is not None  # an audited step names them
    scale = release.layer_scales[layer]
    reach = scale * release.max_grad_norm / release.num_workers / release.units_per_worker
    middle = reach if release.draws.by_chance else 0.0 if release.kappa == 2 else reach / 2
    says_with = seen > middle  # (2, D)
    counts = ErrorCounts(
        false_positives=int(says_with[0].sum()),
        negatives=seen.shape[1],
        false_negatives=int((~says_with[1]).sum()),
        positives=seen.shape[1],
    )
    return LayerAudit(
        layer=layer,
        scale=scale,
        counts=counts,
        mu=mu_from_errors(counts, significance=significance),
        means=(float(seen[0].mean()), float(seen[1].mean())),
    )
