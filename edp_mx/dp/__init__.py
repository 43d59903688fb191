"""Differentially private training of any Gluon network: mechanism, samplers, accounting.

`make_plan` describes the releases of a training and their noise; `PrivateTraining` trains by it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edp_mx.dp.accounting.decay import Decay
    from edp_mx.dp.planning import make_plan
    from edp_mx.dp.private_training import PrivateTraining

__all__ = ["Decay", "PrivateTraining", "make_plan"]
_MODULES = {
    "Decay": "accounting.decay", "PrivateTraining": "private_training", "make_plan": "planning"
}  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import each name when it is first used: a plan needs no MXNet."""
    if name in _MODULES:
        return getattr(import_module(f"edp_mx.dp.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
