"""An attack on DP-SGD with many audited examples on a worker, and others against them."""

import numpy as np

from edp_mx.attacks.audit.bounds import ErrorCounts, mu_from_errors
from edp_mx.attacks.audit.probe import Probe

BLOCK = 16  # coordinates of a layer in which one worker moves


def attack(workers, step, *, slots, against, draws, significance):
    """A1 for absent examples: μ at least, and the mean of ⟨Δ, e⟩ in both worlds.

    A worker holds `slots` audited examples, each far beyond C along a direction e of its own and
    there or not (as Poisson sampling would have it), and `against` others that pull each the other
    way in every step. To any one of them the rest is data that does not change its own e. The
    observer says "with" above a threshold that the first quarter of what it sees sets.
    """
    total = slots * workers.size
    probe = Probe(step, size=BLOCK * total)
    signs = np.where(np.arange(BLOCK) % 2 == 0, 1.0, -1.0) / np.sqrt(BLOCK)
    directions = np.kron(np.eye(total), signs)  # (N · slots, size)
    mine = directions[workers.rank * slots :][:slots]
    far, layer = 1e4 * step.release.max_grad_norm, int(np.argmax(step.layer_scales))
    seen = ([], [])
    for turn in range(draws * 2 // total):
        worlds = (np.arange(total) + turn) % 2
        there = mine[worlds[workers.rank * slots :][:slots] == 1]
        rows = far * np.concatenate([there, *[-mine] * against])  # (drawn, size)
        examples = [rows * (k == layer) for k in range(len(step.layer_scales))]
        for value, world in zip(
            directions @ probe.released(examples, [1] * len(rows))[layer], worlds
        ):
            seen[world].append(float(value))
    means = [float(np.mean(part)) for part in seen]
    first = [part[: len(part) // 4] for part in seen]
    threshold = np.mean([np.mean(part) for part in first])
    without, with_it = (np.array(part[len(part) // 4 :]) for part in seen)
    counts = ErrorCounts(
        false_positives=int((without > threshold).sum()), negatives=len(without),
        false_negatives=int((with_it <= threshold).sum()), positives=len(with_it),
    )  # fmt: skip
    return {"mu": mu_from_errors(counts, significance=significance), "means": means}
