"""Releases that tests change one thing of."""

from edp_mx.dp.accounting.release import Release


def release_with(**changes):
    """Four workers with a micro-batch of eight each, κ = 2, calibrated."""
    values = {"unit": "micro_batch", "num_workers": 4, "micro_batch_size": 8, "max_grad_norm": 1.0,
              "layer_scales": (1.0,), "adjacency": "replace_one",
              "variant": "calibrated"}  # fmt: skip
    return Release(**{**values, **changes})
