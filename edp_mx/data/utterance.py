"""What a user said, and what is to be understood of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Tuple


@dataclass(frozen=True)
class Utterance:
    """One utterance with its annotation.

    Shapes: `tokens` and `slots` have the same length T ≥ 1.
    `slots` are BIO tags ("O", "B-name", "I-name"). `id` says where it was read ("train/17");
    two utterances with the same content and other ids are equal. `user` names who said it, in
    whatever way the corpus tells people (or dialogues) apart; empty where it does not.
    """

    tokens: Tuple[str, ...]
    slots: Tuple[str, ...]
    intent: str
    id: str = field(default="", compare=False)
    user: str = field(default="", compare=False)
