"""Fields of settings that declare their bounds, checked whenever the settings are made."""

from __future__ import annotations

import dataclasses
import math
from operator import ge, gt, le, lt
from typing import Any, Iterable, Mapping, Optional, Sequence, Tuple

from edp_mx.errors import UserError

_BOUNDS = "bounds"  # the key in a field's metadata
_HOLDS = {"at least": ge, "above": gt, "at most": le, "below": lt}


class SettingError(UserError):
    """A setting with an impossible value: its key, and the rest of the sentence after it."""

    def __init__(self, key: str, demand: str) -> None:
        super().__init__(f"{key} {demand}")
        self.key, self.demand = key, demand


def setting(
    default: Any,
    *,
    at_least: Optional[float] = None,
    above: Optional[float] = None,
    at_most: Optional[float] = None,
    below: Optional[float] = None,
    one_of: Sequence[str] = (),
) -> Any:
    """Declare a field of `Settings` with its default and its bounds; a number must also be finite.

    `one_of` are the texts to choose from, for each item of a list. None is never refused: it means
    that an optional setting was left out.
    """
    bounds = {"at least": at_least, "above": above, "at most": at_most, "below": below}
    given = tuple((name, bound) for name, bound in bounds.items() if bound is not None)
    return dataclasses.field(default=default, metadata={_BOUNDS: (given, tuple(one_of))})


class Settings:
    """Base of dataclasses that check their fields, alone or, in a subclass, against each other."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if _BOUNDS in field.metadata and value is not None:
                bounds, choices = field.metadata[_BOUNDS]
                for item in value if isinstance(value, tuple) else (value,):
                    _check(field.name, item, bounds, choices)


def _check(
    key: str, value: Any, bounds: Tuple[Tuple[str, float], ...], choices: Tuple[str, ...]
) -> None:
    """Refuse a value that is outside any bound or is not one of the choices."""
    if choices and value not in choices:
        wanted = ", ".join(choices)
        raise SettingError(key, f"must be {'one of ' * (len(choices) > 1)}{wanted}, not {value!r}")
    is_infinite = isinstance(value, float) and not math.isfinite(value)
    if bounds and (is_infinite or not all(_HOLDS[name](value, bound) for name, bound in bounds)):
        *most, last = ["finite"] * is_infinite + [f"{name} {bound}" for name, bound in bounds]
        wanted = f"{', '.join(most)} and {last}" if most else last
        raise SettingError(key, f"must be {wanted}, not {value}")


def refuse_unread(given: Mapping[str, Any], names: Iterable[str], why: str) -> None:
    """Refuse options that were given though nothing would read them.

    Args:
        given: values by name, e.g. `batch_size` of `--batch-size`; all but None, False and what is
            empty count.
    """
    unread = [name for name in names if given[name] or type(given[name]) in (int, float)]
    if unread:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in unread)
        raise UserError(f"{why}: leave out {options.replace('--overrides', '--set')}")
