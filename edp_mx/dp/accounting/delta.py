"""The choice of δ, and the values that are refused."""

from __future__ import annotations

from typing import Optional

from edp_mx.dp.accounting.choices import check_choice, check_delta, check_rate
from edp_mx.errors import UserError

MODES = ("default", "value", "paper")
PAPER_PUBLIC = 5e-4
PAPER_INTERNAL = 5e-5


def choose_delta(
    *,
    num_examples: int,
    delta: Optional[float] = None,
    delta_mode: str = "default",
    corpus_is_public: bool = True,
) -> float:
    """Return δ for a corpus of n records.

    Args:
        delta: a value of one's own, with mode default or value.
        delta_mode: default (`delta` if given, else 1 / (2n)), value (`delta`), or paper.
        corpus_is_public: which of the paper's two values: 5e-4 (public) or 5e-5 (internal).

    Raises:
        UserError: δ ≥ 1/n, which permits publishing a record outright (only paper mode may); or
            arguments that contradict each other.

    Source: docs/privacy.md, section 7.
    """
    check_choice("delta_mode", delta_mode, MODES)
    if num_examples < 1:
        raise UserError(f"num_examples is {num_examples}; privacy needs at least one example")
    if delta_mode == "paper":
        if delta is not None:
            raise UserError("delta and delta_mode: paper exclude each other; leave one out")
        return PAPER_PUBLIC if corpus_is_public else PAPER_INTERNAL
    if delta is None:
        if delta_mode == "value":
            raise UserError("delta_mode is value but delta is missing; give it")
        return 0.5 / num_examples
    check_rate(delta, "delta", is_open=True)
    check_delta(delta)
    if delta * num_examples >= 1:
        raise UserError(
            f"delta is {delta}, not below 1/n = 1/{num_examples} = {1 / num_examples:.3g}: that "
            "permits publishing an utterance outright; leave delta out for 1/(2n), or repeat the "
            "paper's choice with delta_mode: paper"
        )
    return delta
