"""A text as a model classifies it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Tuple

SHOWN = 3  # labels that people are shown


@dataclass(frozen=True)
class Classified:
    """The label of a text as the model sees it, and how sure it is of each label, best first."""

    tokens: Tuple[str, ...]
    confidences: Tuple[Tuple[str, float], ...]

    @property
    def label(self) -> str:
        """The most likely label."""
        return self.confidences[0][0]

    def to_dict(self) -> Dict[str, Any]:
        """Return it as `predict` prints it for programs."""
        (label, confidence), *_ = self.confidences
        return {
            "tokens": list(self.tokens),
            "label": label,
            "confidence": confidence,
            "confidences": dict(self.confidences),
        }

    def describe(self) -> str:
        """Return it as `predict` prints it for people, a line for each of the likeliest labels."""
        shown = [f"  {name}  ({share:.1%})" for name, share in self.confidences[:SHOWN]]
        return "\n".join([" ".join(self.tokens), *shown])

    def line(self) -> str:
        """Return it on one line: the label, and the text."""
        return f"{self.label}: {' '.join(self.tokens)}"
