"""A text whose [MASK]s a model has filled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Tuple

from edp_mx.data.template import MASK


@dataclass(frozen=True)
class Filled:
    """For each [MASK] of a text, the likeliest pieces and their probabilities, best first."""

    tokens: Tuple[str, ...]
    fillings: Tuple[Tuple[Tuple[str, float], ...], ...]

    def to_dict(self) -> Dict[str, Any]:
        """Return it as `predict` prints it for programs."""
        return {"tokens": list(self.tokens), "fillings": [dict(each) for each in self.fillings]}

    def describe(self) -> str:
        """Return it as `predict` prints it for people: the text, and a line for each [MASK]."""
        if not self.fillings:
            return f"{' '.join(self.tokens)}\n  (write {MASK} where a piece is to be guessed)"
        lines = (", ".join(f"{p}  ({s:.1%})" for p, s in each) for each in self.fillings)
        return "\n".join([" ".join(self.tokens), *(f"  {line}" for line in lines)])

    def line(self) -> str:
        """Return the text with the likeliest piece at each [MASK]."""
        best = iter([each[0][0] for each in self.fillings])
        return " ".join(next(best, MASK) if token == MASK else token for token in self.tokens)
