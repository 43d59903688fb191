"""Utterances for generation: the tokens of a prompt, the token `<|reply|>`, and the reply's."""

from __future__ import annotations

from typing import Sequence, Tuple

from edp_mx.data.utterance import REPLY
from edp_mx.errors import UserError

LABEL = "reply"  # the intent of an utterance that has a prompt and a reply, and no other label


def split_reply(tokens: Sequence[str]) -> Tuple[Tuple[str, ...], Tuple[str, ...]]:
    """Return the tokens before and after the first `<|reply|>`.

    Raises:
        UserError: there is none.
    """
    if REPLY not in tokens:
        start = " ".join(tokens[:8])
        raise UserError(
            f'the utterance "{start}" has no token {REPLY} between a prompt and a reply; name the '
            "columns of both by data.columns.prompt and data.columns.reply"
        )
    at = list(tokens).index(REPLY)
    return tuple(tokens[:at]), tuple(tokens[at + 1 :])
