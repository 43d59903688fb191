"""The one kind of error that a user can mend."""

from __future__ import annotations


class UserError(Exception):
    """Bad input or a missing thing, told in one sentence that names the key, file or line.

    The command line prints the sentence without a traceback and exits with 2. Where all workers
    raise the same error (`is_shared`), the first says it for all.
    """

    def __init__(self, sentence: str, *, is_shared: bool = False) -> None:
        super().__init__(sentence)
        self.is_shared = is_shared
