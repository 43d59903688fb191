"""Libraries that set-up compiles from this package's C and C++."""

from __future__ import annotations

import ctypes
from importlib.util import find_spec
from pathlib import Path
from typing import Tuple

from edp_mx.errors import UserError


def open_library(module: str, *, version: int, function: str) -> Tuple[ctypes.CDLL, Path]:
    """Open a compiled library of this package, and return it with the file that it was read from.

    Args:
        module: its dotted name, as in setup.py.
        function: the library's function that returns its version.

    Raises:
        UserError: the library is missing, damaged, for another machine, or of another version.
    """
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise UserError(f"{module} was not compiled: run launch/setup.sh")
    try:
        library = ctypes.CDLL(spec.origin)  # a call lets other threads run
        found = getattr(library, function)()
    except (OSError, AttributeError) as error:
        raise unusable(spec.origin, error) from error
    if found != version:
        raise unusable(spec.origin, f"it is version {found}, not {version}")
    return library, Path(spec.origin)


def unusable(path: str, reason: object) -> UserError:
    """Return the error for a library that cannot be used."""
    last_line = str(reason).strip().splitlines()[-1]
    return UserError(
        f"the compiled library {path} cannot be used ({last_line}): "
        "run launch/setup.sh to compile it again"
    )
