"""References and hypotheses that belong together."""

from __future__ import annotations

from typing import Any, Sequence

from edp_mx.errors import UserError


def check_pairs(references: Sequence[Any], hypotheses: Sequence[Any]) -> None:
    """Refuses anything but one hypothesis for each reference, and at least one of both."""
    if len(references) != len(hypotheses):
        raise UserError(
            f"there are {len(references)} references but {len(hypotheses)} hypotheses; "
            "each utterance needs one of both"
        )
    if not references:
        raise UserError("there is nothing to score: no utterances")
