"""What is written around an utterance, with the [MASK] that a masked language model fills in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Tuple

from edp_mx.data.tokenization import split_tokens
from edp_mx.data.tokenizer import Tokenizer
from edp_mx.data.utterance import MASK, SEPARATOR

UTTERANCE = "{}"


def is_template(text: str) -> bool:
    """Whether a text has the utterance and one [MASK], each as a word of its own.

    Example:
        >>> is_template("{} . it is about [MASK] ."), is_template("{}. it is about [MASK]")
        (True, False)
    """
    words = split_tokens(text)
    return words.count(UTTERANCE) == words.count(MASK) == 1


@dataclass(frozen=True)
class Frame:
    """The pieces around those of an utterance.

    Attributes:
        before: ids, of which the first is that of [CLS].
        after: ids, of which the last is that of [SEP].
        mask: the place of [MASK], counted from the end if it is negative; 0 where there is none.
    """

    before: Tuple[int, ...]
    after: Tuple[int, ...]
    mask: int = 0

    @classmethod
    def of(cls, template: Optional[str], tokenizer: Tokenizer) -> Frame:
        """Spell a template; None is [CLS] and [SEP] alone.

        Args:
            template: words between blanks, for which `is_template` holds; [SEP] may be among them.

        Returns:
            Its pieces between [CLS] and [SEP].
        """
        ids = tokenizer.special_ids
        special = {MASK: [ids.mask], SEPARATOR: [ids.sep]}
        words = split_tokens(UTTERANCE if template is None else template)
        at = words.index(UTTERANCE)
        before, after = (
            [i for word in side for i in special.get(word) or tokenizer.ids(word)]
            for side in (words[:at], words[at + 1 :])
        )
        before, after = [ids.cls, *before], [*after, ids.sep]
        whole = [*before, *after]
        at = whole.index(ids.mask) if ids.mask in whole else 0
        return cls(tuple(before), tuple(after), at if at < len(before) else at - len(whole))

    @property
    def size(self) -> int:
        """How many pieces there are beside those of the utterance."""
        return len(self.before) + len(self.after)
