"""The one kind of error that a user can mend."""

from __future__ import annotations

import re

MOST_QUOTED, MOST_SAID = 200, 1000  # characters of a value, of a sentence
_BEGINNING = 600  # of a sentence that is too long: its end, which says what to do, stays too
_LONG = re.compile(rf"(['\"])((?:(?!\1).){{{MOST_QUOTED}}})(?:(?!\1).)+\1", re.DOTALL)
# How characters that would move a terminal are spelled out, for `str.translate`.
CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if code != 10}


class UserError(Exception):
    """Bad input or a missing thing, told in one sentence that names the key, file or line.

    The command line prints the sentence without a traceback and exits with 2. Where all workers
    raise the same error (`is_shared`), the first says it for all. What it quotes may come from a
    file: long values are cut, so is the middle of a long sentence, between its place and what to
    do; characters that would move a terminal are spelled out.
    """

    def __init__(self, sentence: str, *, is_shared: bool = False) -> None:
        super().__init__(_harmless(sentence))
        self.is_shared = is_shared


def _harmless(sentence: str) -> str:
    plain = sentence.encode("utf-8", "backslashreplace").decode("utf-8").translate(CONTROLS)
    cut = _LONG.sub(r"\1\2…\1", plain)
    if len(cut) <= MOST_SAID:
        return cut
    return f"{cut[:_BEGINNING]} … {cut[_BEGINNING + 3 - MOST_SAID :]}"
