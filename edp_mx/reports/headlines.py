"""The three numbers at the head of a page: how good, how private, how much leaks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Sequence

SCALE = 4.0  # decades of an ε's bar, which begins at 0.1


@dataclass(frozen=True)
class Bar:
    """A number beside others: its name, its text, its share of the width, whether it is ours."""

    label: str
    text: str
    share: float
    is_own: bool = False


@dataclass(frozen=True)
class Headline:
    """A number that matters, and what it is to be compared with.

    Attributes:
        question: that it answers.
        value, unit: the number, and what it is one of.
        says: sentences on it.
        command: how to measure it, where it was not.
        are_decades: whether the bars are logarithmic.
    """

    question: str
    value: str
    unit: str = ""
    bars: Sequence[Bar] = ()
    says: Sequence[str] = ()
    command: str = ""
    are_decades: bool = False

    def __str__(self) -> str:
        """Return it as a line of Markdown."""
        beside = "; ".join(f"{bar.label} {bar.text}" for bar in self.bars if not bar.is_own)
        said = f"**{self.question}**: {f'{self.unit} {self.value}'.strip()}"
        said += f" ({beside})" if beside else ""
        command = [f"`{self.command}`"] * bool(self.command)
        return " ".join([f"{said}.", *self.says, *command])
