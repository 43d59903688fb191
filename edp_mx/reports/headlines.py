"""The three numbers at the head of a page: how good, how private, how much leaks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterable, List, Sequence, Tuple

CHANCE = 0.5  # the AUC of a guess
SCALE = 4.0  # decades of an ε's bar, which begins at 0.1


@dataclass(frozen=True)
class Bar:
    """A number beside others: its name, its text, its share of the width, whether it is ours."""

    label: str
    text: str
    share: float
    is_own: bool = False


def bars_of(shown: Iterable[Tuple[str, str, float]]) -> List[Bar]:
    """Return the bars of names, texts and shares, of which the first is our own."""
    return [Bar(*each, is_own=i == 0) for i, each in enumerate(shown)]


def bars_of_aucs(aucs: Iterable[Tuple[str, float]]) -> List[Bar]:
    """Return a bar for the AUC of each attack, our own first, and one for a blind guess."""
    shown = [(name, f"{100 * auc:.1f} %", auc) for name, auc in aucs]
    return bars_of([*shown, ("a blind guess", f"{100 * CHANCE:.0f} %", CHANCE)])


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
        beside = "; ".join(f"{bar.label} {bar.text}" for bar in self.bars if not bar.is_own)
        said = f"**{self.question}**: {f'{self.unit} {self.value}'.strip()}"
        said += f" ({beside})" if beside else ""
        command = [f"`{self.command}`"] * bool(self.command)
        return " ".join([f"{said}.", *self.says, *command])
