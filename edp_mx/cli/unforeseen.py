"""One sentence for errors that no other place has caught: out of memory, too deep, or a fault."""

from __future__ import annotations

import atexit
import re
import sys
from contextlib import suppress
from typing import Optional

from edp_mx.errors import UserError

DEBUG = "EDP_MX_DEBUG"  # set to 1, the traceback is shown in place of the sentence
FAULT = 1  # exit code: a fault of the program, not one that its user can mend
_TOO_LARGE = re.compile(r"allocat|bad_alloc|out of memory|larger than 2\^31 elements", re.I)
_OTHERS = re.compile(r"horovod|gloo|allreduce|allgather|connection (reset|closed)", re.I)


def foreseen(error: BaseException) -> Optional[UserError]:
    """Return the advice for an error that may arise anywhere; None if there is none.

    MXNet raises RuntimeError where memory is full and where another worker is gone.
    """
    kind, said = type(error).__name__, " ".join(str(error).split())
    if isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and _TOO_LARGE.search(said)
    ):
        return UserError(
            f"there is not enough memory ({_end_of(said) or kind}); lower training.batch_size, "
            "training.evaluation_batch_size, privacy.chunk_size or data.max_tokens, or the model's "
            "hidden_size, num_layers and intermediate_size, or use fewer workers on this machine"
        )
    if isinstance(error, OSError):
        place = f"cannot use {error.filename}: " if error.filename else ""
        return UserError(f"{place}{error.strerror or said}")
    if isinstance(error, RecursionError):
        return UserError("something in the input is nested too deeply to be read; make it flatter")
    if isinstance(error, RuntimeError) and _OTHERS.search(f"{kind} {said}"):
        return UserError(
            "another worker has ended; its own message gives the reason", is_shared=True
        )
    return None


def quiet_the_end() -> None:
    """Let MXNet not repeat, when the process ends, the error that it ends with."""
    base = sys.modules.get("mxnet.base")
    if base is None:
        return
    notify = base._notify_shutdown  # which raises the error of an earlier, failed operation

    def notify_quietly() -> None:
        with suppress(base.MXNetError):
            notify()

    atexit.unregister(notify)
    atexit.register(notify_quietly)


def fault(error: BaseException) -> UserError:
    """Return the message for an error whose cause is unknown."""
    kind, said = type(error).__name__, " ".join(str(error).split())
    return UserError(
        f"a fault of the program ({kind}: {_end_of(said)}); {DEBUG}=1 shows where it arose, which "
        "a report of it should include"
    )


def _end_of(said: str) -> str:
    """The last 200 characters: MXNet puts a traceback of its own before the fault."""
    return said.rpartition("MXNetError: ")[2][-200:]
