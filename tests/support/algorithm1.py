"""Algorithm 1, tensor by tensor in float64: the slow form that the fast one is held against."""

import numpy as np


def scaled_norm(gradient, scales):
    """‖(Δ_k/α_k)_k‖₂. `gradient`: one list of arrays a layer."""
    return np.sqrt(
        sum(
            np.square(np.asarray(tensor, np.float64) / scale).sum()
            for tensors, scale in zip(gradient, scales)
            for tensor in tensors
        )
    )


def worker_step(gradient, *, scales, max_grad_norm, noise_stddevs=None, noise=None):
    """Scale, clip, rescale, add noise, if any is given: what one worker sends.

    `noise`: standard normal arrays of the gradient's shapes; `noise_stddevs`: one a layer.
    """
    norm = scaled_norm(gradient, scales)
    factor = min(1.0, max_grad_norm / norm) if norm > 0 else 1.0
    if noise is None:
        noise_stddevs, noise = [0.0] * len(gradient), [[0.0] * len(part) for part in gradient]
    released = []
    for tensors, scale, stddev, ys in zip(gradient, scales, noise_stddevs, noise):
        released.append(
            [
                (np.asarray(tensor, np.float64) / scale) * factor * scale + stddev * np.asarray(y)
                for tensor, y in zip(tensors, ys)
            ]
        )
    return released


def aggregate(workers):
    """1/N Σ."""
    per_worker = list(workers)
    return [
        [
            np.mean([worker[k][i] for worker in per_worker], axis=0)
            for i in range(len(per_worker[0][k]))
        ]
        for k in range(len(per_worker[0]))
    ]


def published_stddevs(*, max_grad_norm, noise_multiplier, num_workers, scales):
    """y/N with y ~ N(0, (C z)²), as the paper prints it."""
    return [max_grad_norm * noise_multiplier / num_workers for _ in scales]


def calibrated_stddevs(*, max_grad_norm, noise_multiplier, num_workers, scales, kappa):
    """α_k κ √N y/N."""
    return [
        scale * kappa * np.sqrt(num_workers) * max_grad_norm * noise_multiplier / num_workers
        for scale in scales
    ]
