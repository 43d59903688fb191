"""The names that a configuration of the mechanism chooses from, and the checks that they share."""

from __future__ import annotations

import math
from typing import Collection, Optional

from edp_mx.errors import UserError
from edp_mx.runtime.limits import LEAST_DELTA, LEAST_RATE, MOST_COUNTED

ADJACENCIES = ("replace_one", "zero_out")
NEIGHBOURS = ("zero_out", "replace_one", "replace_in_mean")  # see `events.Composition`
VARIANTS = ("published", "calibrated")
GAUSSIANS = ("plain", "hardened")  # how noise is drawn; docs/privacy.md, section 10
SCALES_SOURCES = (
    "ones",  # α_k = 1 for every layer; nothing of the data is used
    "sqrt_dim",  # α_k ∝ √(size of layer k); nothing of the data is used
    "public_batch",  # α_k ∝ gradient norm on random tokens; nothing of the data is used
    "dp_release",  # α_k ∝ mean gradient norm of many micro-batches, with noise; counted in ε
    "first_batch",  # α_k ∝ gradient norm on the first batch (the paper's): leaks, so ε is ∞
)
SCALES_UNITS = (
    "largest",  # α is divided by its largest: max α = 1
    "norm",  # α is taken as it is found, e.g. the gradient norms themselves
)
MODES = ("default", "value", "paper")  # how δ was chosen
PAPER_PUBLIC, PAPER_INTERNAL = 5e-4, 5e-5  # δ of the paper, for public corpora and for its own


def check_choice(name: str, value: object, choices: Collection[str]) -> None:
    """Refuse a value that is not one of the choices."""
    if value not in choices:
        raise UserError(f"{name} is {value!r}; choose one of {', '.join(choices)}")


def check_delta(delta: float) -> None:
    """Refuse a δ that is not a probability, and 0, which would need an infinite ε."""
    if not 0 < delta <= 1:
        raise UserError(f"delta is {delta}; it must be above 0 and at most 1")
    if delta < LEAST_DELTA:
        raise UserError(f"delta is {delta}; nothing can be counted below {LEAST_DELTA}")


def check_multiplier(value: float, name: str = "noise_multiplier") -> None:
    """Refuse a noise multiplier that is negative, NaN or infinite (which would look private)."""
    if not 0 <= value < math.inf:
        raise UserError(f"{name} is {value}; it must be finite, 0 or more")


def check_rate(value: float, name: str = "sample_rate", *, is_open: bool = False) -> None:
    """Refuse a rate that is not a probability; 0 and 1 too if the interval is open."""
    if not 0 <= value <= 1 or (is_open and value in (0, 1)):
        raise UserError(f"{name} is {value}; it must lie between 0 and 1")
    if 0 < value < LEAST_RATE and name == "sample_rate":
        raise UserError(f"{name} is {value}; it must be 0, or {LEAST_RATE} or more")


def check_count(value: int, name: str, *, least: int = 0, most: int = MOST_COUNTED) -> None:
    """Refuse a number that is not whole, too small or too large."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise UserError(f"{name} is {value!r}; it must be a whole number from {least} to {most:,}")


def choose_delta(*, num_examples: int, delta: Optional[float] = None) -> float:
    """Return δ for a corpus of n records: the given one, else 1 / (2n).

    Raises:
        UserError: δ ≥ 1/n, which permits publishing a record outright.

    Source: docs/privacy.md, section 7.
    """
    if num_examples < 1:
        raise UserError(f"num_examples is {num_examples}; privacy needs at least one example")
    if delta is None:
        return 0.5 / num_examples
    check_delta(delta)
    if delta * num_examples >= 1:
        raise UserError(
            f"delta is {delta}, not below 1/n = 1/{num_examples} = {1 / num_examples:.3g}: that "
            "permits publishing an utterance outright; leave delta out for 1/(2n), or repeat the "
            "paper's choice with delta_mode: paper"
        )
    return delta
