"""The one kind of error that a user can mend."""

from __future__ import annotations


class UserError(Exception):
    """Bad input or a missing thing, told in one sentence that names the key, file or line.

    The command line prints the sentence without a traceback and exits with 2.
    """
