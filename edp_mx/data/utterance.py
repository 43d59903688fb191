"""An utterance with its annotation."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Dict, List, Sequence, Tuple

SEPARATOR = "[SEP]"  # the token between two texts
MASK = "[MASK]"  # the token that hides one
REPLY = "<|reply|>"  # the token between what a language model is given and what it continues with
_BETWEEN = frozenset((SEPARATOR, REPLY, "user:", "system:"))  # the parts of an utterance
_LONG = 5  # words


@dataclass(frozen=True)
class Utterance:
    """One utterance with its annotation.

    Attributes:
        tokens, slots: T ≥ 1 tokens, and as many BIO tags ("O", "B-name", "I-name").
        id: where it was read ("train/17"); it plays no part in comparisons, nor does `user`.
        user: the person (or dialogue) that said it; empty if the corpus does not tell.
    """

    tokens: Tuple[str, ...]
    slots: Tuple[str, ...]
    intent: str
    id: str = field(default="", compare=False)
    user: str = field(default="", compare=False)

    def to_json(self) -> Dict[str, Any]:
        """Return it as a JSON line of ours holds it."""
        user = {"user": self.user} if self.user else {}
        return {"tokens": self.tokens, "slots": self.slots, "intent": self.intent, "id": self.id,
                **user}  # fmt: skip


def joined(first: Sequence[str], second: Sequence[str]) -> List[str]:
    """Return the tokens of two texts that are read together."""
    return [*first, SEPARATOR, *second]


def texts_of(tokens: Sequence[str]) -> List[str]:
    """Return the whole of an utterance, and each long part of one that has parts.

    Parts are a prompt and its reply, two texts that are read together, and the turns of a dialogue;
    those with fewer than five words say too little about where they are from.
    """
    texts = [" ".join(tokens)]
    if not _BETWEEN.isdisjoint(tokens):
        parts = (list(part) for ends, part in groupby(tokens, _BETWEEN.__contains__) if not ends)
        texts += [" ".join(part) for part in parts if len(part) >= _LONG]
    return texts


def are_words(tokens: Any) -> bool:
    """Return whether a value from outside is a list of words, and not an empty one."""
    return (
        isinstance(tokens, list)
        and bool(tokens)
        and all(isinstance(token, str) and token.strip() for token in tokens)
    )
