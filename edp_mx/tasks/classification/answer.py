"""A text as a model classifies it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Tuple

SHOWN = 3  # labels that people are shown


@dataclass(frozen=True)
class Classified:
    """The label of a text as the model sees it, and how sure it is of each label, best first."""

    tokens: Tuple[str, ...]
    label: str
    confidences: Tuple[Tuple[str, float], ...]

    def to_dict(self) -> Dict[str, Any]:
        """Return it as `predict` prints it for programs."""
        return {
            "tokens": list(self.tokens),
            "label": self.label,
            "confidence": self.confidences[0][1],
            "confidences": dict(self.confidences),
        }

    def describe(self) -> str:
        """Return it as `predict` prints it for people, a line for each of the likeliest labels."""
        shown = [f"  {name}  ({share:.1%})" for name, share in self.confidences[:SHOWN]]
        if self.label != self.confidences[0][0]:
            shown.insert(0, f"  {self.label}")
        return "\n".join([" ".join(self.tokens), *shown])

    def line(self) -> str:
        """Return it on one line: the label, and the text."""
        return f"{self.label}: {' '.join(self.tokens)}"
