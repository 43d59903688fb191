"""Processes of a job: their demands on the system, how they are ended, and exit codes."""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import signal
import sys
import termios
import threading
from typing import Callable, List, Optional, Union

_PRCTL = getattr(ctypes.CDLL(None), "prctl", None)
_PR_SET_PDEATHSIG = 1  # Linux: the signal that a child gets when its parent dies
_PR_SET_DUMPABLE = 4  # Linux: whether it may leave a core dump
EXIT_NO_SSH = 255  # of the launcher: a host was not reached, or is lost
EXIT_ASKED, EXIT_HUNG_UP = 130, 129  # by Ctrl-C or SIGTERM; by SIGHUP: the terminal is closed
_HUNG_UP = threading.Event()


def launcher(
    workers: Union[int, str], *, hosts: Optional[str] = None, nic: Optional[str] = None
) -> List[str]:
    """Return the words before a command that so many workers are to run.

    Args:
        hosts: as for `launcher.launch`, and so is `nic`; left out where empty.
    """
    given = {"workers": str(workers), "hosts": hosts, "nic": nic}
    options = [word for name, value in given.items() if value for word in (f"--{name}", value)]
    return [sys.executable, "-m", "edp_mx.runtime.launcher", *options]


def prctl(option: int, value: int) -> None:
    """Set an option of this process; elsewhere than on Linux nothing happens."""
    if _PRCTL is not None:
        _PRCTL(option, value, 0, 0, 0)


def forbid_core_dumps() -> None:
    """Let this process leave no core dump from now on, neither in a file nor with a program.

    Called by whatever draws a secret key. The memory also holds private text and gradients. On
    Linux other processes of the same user then cannot read it either, debuggers among them.
    """
    _, most = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, most))
    prctl(_PR_SET_DUMPABLE, 0)  # a limit of 0 does not stop a dump that goes to a program


def end_with_parent() -> None:
    """Have this process ended when its parent dies, however that came; called by a new child."""
    prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def asked_to_end() -> int:
    """Return the exit code of a process that was asked to end."""
    return EXIT_HUNG_UP if _HUNG_UP.is_set() else EXIT_ASKED


def on_ending(handle: Callable[..., None]) -> Callable[[], None]:
    """Have SIGTERM and SIGHUP handled, SIGHUP unless it is ignored (`nohup`).

    Returns:
        A function that restores the handlers from before.
    """

    def handle_hang_up(*given: object) -> None:
        _HUNG_UP.set()
        _leave_closed_terminal()
        handle(*given)

    before = {signal.SIGTERM: signal.signal(signal.SIGTERM, handle)}
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        before[signal.SIGHUP] = signal.signal(signal.SIGHUP, handle_hang_up)

    def put_back() -> None:
        for number, old in before.items():
            signal.signal(number, old)

    return put_back


def interrupt(*_: object) -> None:
    """Treat a signal as Ctrl-C."""
    raise KeyboardInterrupt


def _leave_closed_terminal() -> None:
    """Let nothing be written to a terminal that is gone, where each line would be an error."""
    for descriptor in (1, 2):
        try:
            termios.tcgetattr(descriptor)
        except termios.error as error:
            if error.args[0] == errno.EIO:
                os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
