"""What is done with an error in a record: it is raised, or handed on and the next record read."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Callable, Optional

from edp_mx.errors import UserError


class UnreadableRest(UserError):
    """An error after which nobody knows where the next record of a file begins."""


class RecordErrors(AbstractContextManager):
    """Handles the errors of single records; a reader reads each one inside `with errors:`.

    Args:
        hand_on: is given each error in place of raising it, so that the reader goes on.
        is_last: whether it is given an `UnreadableRest` too; else that is raised, and ends the
            reading of its file.

    Example:
        >>> found = []
        >>> with RecordErrors(found.append):
        ...     raise UserError("mine.csv, line 7: the utterance is empty; remove it")
        >>> len(found)
        1
    """

    def __init__(
        self, hand_on: Optional[Callable[[UserError], None]] = None, *, is_last: bool = False
    ) -> None:
        self._hand_on, self._is_last = hand_on, is_last

    def __exit__(self, _: Any, error: Optional[BaseException], __: Any) -> bool:
        if self._hand_on is None or not isinstance(error, UserError):
            return False
        if isinstance(error, UnreadableRest) and not self._is_last:
            return False
        self._hand_on(error)
        return True
