"""Processes of a job: what they ask of the system, and with which codes they end."""

from __future__ import annotations

import ctypes
import signal
import sys
from typing import List, Optional, Union

_PRCTL = getattr(ctypes.CDLL(None), "prctl", None)
_PR_SET_PDEATHSIG = 1  # Linux: the signal that a child gets when its parent dies
EXIT_NO_SSH = 255  # of the launcher: a host was not reached, or is lost
EXIT_ASKED = 130  # of the launcher: by Ctrl-C or SIGTERM to it


def launcher(
    workers: Union[int, str], *, hosts: Optional[str] = None, nic: Optional[str] = None
) -> List[str]:
    """Return what stands before a command that so many workers are to run.

    Args:
        hosts, nic: as for `launcher.launch`; left out where empty.
    """
    given = {"workers": str(workers), "hosts": hosts, "nic": nic}
    options = [word for name, value in given.items() if value for word in (f"--{name}", value)]
    return [sys.executable, "-m", "edp_mx.runtime.launcher", *options]


def prctl(option: int, value: int) -> None:
    """Set an option of this process; elsewhere than on Linux nothing happens."""
    if _PRCTL is not None:
        _PRCTL(option, value, 0, 0, 0)


def end_with_parent() -> None:
    """Have this process ended when its parent dies, however that came; called by a new child."""
    prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
