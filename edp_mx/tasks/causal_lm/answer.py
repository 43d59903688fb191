"""A text that a model has continued."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Tuple

from edp_mx.data.utterance import REPLY, SEPARATOR


@dataclass(frozen=True)
class Continued:
    """A text and what the model writes behind it, which begins with a blank or within a word."""

    tokens: Tuple[str, ...]
    text: str

    def to_dict(self) -> Dict[str, Any]:
        """Return it as `predict` prints it for programs."""
        return {"tokens": list(self.tokens), "continuation": self.text.strip()}

    def describe(self) -> str:
        """Return it as `predict` prints it for people: the reply alone where there is a prompt."""
        if self.tokens[-1] in (REPLY, SEPARATOR):
            return self.text.strip()
        return f"{' '.join(self.tokens)}{self.text}"

    def line(self) -> str:
        """Return the same; `predict` prints it on one line."""
        return self.describe()
