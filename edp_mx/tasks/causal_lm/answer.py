"""What may come next behind a text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Tuple


@dataclass(frozen=True)
class Continued:
    """A text, and the likeliest pieces behind it with their probabilities, best first."""

    tokens: Tuple[str, ...]
    next_pieces: Tuple[Tuple[str, float], ...]

    def to_dict(self) -> Dict[str, Any]:
        """Return it as `predict` prints it for programs."""
        return {"tokens": list(self.tokens), "next_pieces": dict(self.next_pieces)}

    def describe(self) -> str:
        """Return it as `predict` prints it for people."""
        pieces = ", ".join(f"{piece}  ({share:.1%})" for piece, share in self.next_pieces)
        return f"{' '.join(self.tokens)}\n  {pieces}"

    def line(self) -> str:
        """Return the text with the likeliest piece."""
        return f"{' '.join(self.tokens)} {self.next_pieces[0][0]}"
