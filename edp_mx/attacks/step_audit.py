"""A1: can an observer of the aggregate tell the two worst neighbours apart better than claimed?"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Callable, Dict, Iterable, List, Tuple

import numpy as np

from edp_mx.accounting.release import Release
from edp_mx.attacks.bounds import ErrorCounts, epsilon_of_mu, mu_from_errors
from edp_mx.attacks.probe import AuditedStep, Probe
from edp_mx.attacks.verdict import Verdict
from edp_mx.distributed import Workers

BLOCK = 64  # coordinates of each layer in which one worker moves
OVERSHOOT = 1e4  # how far beyond C the gradients reach: only the clipping holds them


@dataclass(frozen=True)
class LayerAudit:
    """What one layer gave away.

    Attributes:
        layer: k.
        scale: α_k.
        counts: the attack's errors.
        mu: the lower bound on sensitivity / noise.
        means: of ⟨Δ, e⟩ in the world without and the world with.
    """

    layer: int
    scale: float
    counts: ErrorCounts
    mu: float
    means: Tuple[float, float]


@dataclass(frozen=True)
class StepAudit:
    """All of A1: its verdict, and the layers behind it."""

    verdict: Verdict
    layers: Tuple[LayerAudit, ...]

    @property
    def is_refuted(self) -> bool:
        """Whether the audited claim is false."""
        return self.verdict.is_refuted

    def to_dict(self) -> Dict[str, Any]:
        """Strict JSON."""
        layers = [asdict(layer) for layer in self.layers]
        return {"audit": "step", **self.verdict.to_dict(), "layers": layers}

    def describe(self) -> str:
        """The verdict, and a line for each layer."""
        lines = [self.verdict.describe()]
        for layer in self.layers:
            counts = layer.counts
            lines.append(
                f"  layer {layer.layer} (alpha {layer.scale:g}): false positives "
                f"{counts.false_positives} of {counts.negatives}, false negatives "
                f"{counts.false_negatives} of {counts.positives}, mu at least {layer.mu:.3f}"
            )
        return "\n".join(lines)


def audit_step(
    workers: Workers,
    step: AuditedStep,
    *,
    draws: int = 1000,
    delta: float = 1e-5,
    confidence: float = 0.95,
    claim: str = "holds",
    is_alone: bool = False,
    progress: Callable[..., Iterable[Any]] = lambda steps, *_: steps,
) -> StepAudit:
    """Attacks real steps: one example turns its micro-batch's mean round.

    In both worlds the mean lies far beyond C along a direction e of one layer, with opposite signs
    (for κ = 1: there, or zero). The observer sees ⟨Δ, e⟩ of the aggregate and says "with" above
    the middle, which is fixed beforehand. Tried on the layers with the largest and smallest α.

    Every worker has an e of its own, orthogonal to the others', so that one step is a draw for
    each of them: to any one, the others are data that do not change.

    Args:
        workers: this worker among all; each calls this with the same arguments.
        draws: in each world and layer.
        delta, confidence: of the bound on ε.
        claim: which accounting is audited, published or holds.
        is_alone: one worker moves in a step, in turn, and the others' gradients are zero: N times
            slower, but finds leaks that other gradients drown.
        progress: `progress(iterable, description, total)`, e.g. a bar.

    Guarantee: the bound on μ takes the draws as independent, and its ε takes the noise as Gaussian;
    A0 looks at both. Layers share the significance.

    Source: Nasr et al. (2021, 2023); PRIVACY, "Audits".
    """
    probe = Probe(workers, step, size=BLOCK * workers.size)
    scales = step.layer_scales
    chosen = sorted({int(np.argmax(scales)), int(np.argmin(scales))})
    significance = (1 - confidence) / len(chosen)
    plan = _plan(draws, workers.size, is_alone=is_alone)
    layers = []
    for k in chosen:
        seen = _observe(probe, workers, step, k, progress(plan, f"layer {k}", len(plan)))
        layers.append(_judge(probe, seen[:, :draws], k, significance))
    published, holds = step.claims(num_workers=workers.size, delta=delta)
    verdict = Verdict(
        subject="one step",
        bound=epsilon_of_mu(max(layer.mu for layer in layers), delta=delta),
        confidence=confidence,
        delta=delta,
        claim=claim,
        claims={"published": published, "holds": holds},
    )
    return StepAudit(verdict, tuple(layers))


def _plan(draws: int, num_workers: int, *, is_alone: bool) -> List[Dict[int, int]]:
    """For each step, the workers that move and the world (0 or 1) that each is in.

    Each worker is in either world equally often, `draws` times in all or a few more.
    """
    turns = -(-draws // num_workers)
    if is_alone:
        return [{i: world} for _ in range(turns) for i in range(num_workers) for world in (0, 1)]
    return [{i: (i + s) % 2 for i in range(num_workers)} for s in range(2 * turns)]


def _observe(
    probe: Probe,
    workers: Workers,
    step: AuditedStep,
    layer: int,
    plan: Iterable[Dict[int, int]],
) -> np.ndarray:
    """⟨Δ, e⟩ in the world without and the world with: (2, draws) float64."""
    signs = np.where(np.arange(BLOCK) % 2 == 0, 1.0, -1.0) / np.sqrt(BLOCK)
    directions = np.kron(np.eye(workers.size), signs)  # the worker's e, (N, size)
    shape = (step.micro_batch_size, BLOCK * workers.size)
    still = [np.zeros(shape, np.float32) for _ in step.layer_scales]
    moving = [
        [
            part if k != layer else np.outer(world, directions[workers.rank])
            for k, part in enumerate(still)
        ]
        for world in _worlds(probe.release, step.micro_batch_size)
    ]
    seen: Tuple[List[float], List[float]] = ([], [])
    for worlds in plan:
        mine = worlds.get(workers.rank)
        released = probe.released(still if mine is None else moving[mine])[layer]
        for worker, world in worlds.items():
            seen[world].append(float(directions[worker] @ released))
    return np.array(seen)


def _worlds(release: Release, size: int) -> Tuple[np.ndarray, np.ndarray]:
    """Each example's gradient along e, (M,), in the world without and with; the first one differs.

    With several examples the first is absent (zero) or outweighs all others; alone it points one
    way or the other under replace-one, and is absent or there under zero-out.

    Args:
        size: |M|.
    """
    far = OVERSHOOT * release.max_grad_norm * release.num_workers * size
    without, with_it = np.zeros(size), np.zeros(size)
    with_it[0] = far
    if size > 1:
        without[1:] = with_it[1:] = -far / 2 / (size - 1)
    elif release.kappa == 2:
        without[0] = -far
    return without, with_it


def _judge(probe: Probe, seen: np.ndarray, layer: int, significance: float) -> LayerAudit:
    """Counts the errors of the middle between what the two worlds release without noise."""
    release = probe.release
    scale = release.layer_scales[layer]
    reach = scale * release.max_grad_norm / release.num_workers
    middle = 0.0 if release.kappa == 2 else reach / 2
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
