"""Keeps secrets of a process out of core dumps."""

from __future__ import annotations

import resource

from edp_mx.runtime.processes import prctl

_PR_SET_DUMPABLE = 4  # Linux


def forbid_core_dumps() -> None:
    """Let this process leave no core dump from now on, neither in a file nor with a program.

    Called by whatever draws a secret key. The memory also holds private text and gradients. On
    Linux other processes of the same user then cannot read it either, debuggers among them.
    """
    _, most = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, most))
    prctl(_PR_SET_DUMPABLE, 0)  # a limit of 0 does not stop a dump that goes to a program
