"""How many labels a corpus has."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Sequence

from edp_mx.runtime.limits import MOST_COUNTED
from edp_mx.runtime.structured import AsRead

REACH = 3.0  # the factor between the numbers of intents, or of slots, of corpora that are near


@dataclass(frozen=True)
class Labels(AsRead):
    """How many intents (or labels of texts) and slots there are to tell apart."""

    intents: int
    slots: int
    LIMITS = {"intents": (0, MOST_COUNTED), "slots": (0, MOST_COUNTED)}

    @classmethod
    def of(cls, intents: Sequence[str], tags: Sequence[str]) -> Labels:
        """Count them; tags are such as B-time."""
        return cls(len(intents), len({tag.partition("-")[2] for tag in tags} - {""}))

    def is_near(self, other: Labels) -> bool:
        """Return whether both numbers are within `REACH`; 0 is near 0 alone."""
        pairs = ((self.intents, other.intents), (self.slots, other.slots))
        return all(max(pair) <= REACH * min(pair) for pair in pairs)

    def distance(self, other: Labels) -> float:
        """Return the distance in the logarithms of both numbers."""
        pairs = ((self.intents, other.intents), (self.slots, other.slots))
        return sum(abs(math.log((1 + a) / (1 + b))) for a, b in pairs)

    def in_words(self) -> str:
        """Return both numbers."""
        return f"{self.intents:,} intents and {self.slots or 'no'} slots"
