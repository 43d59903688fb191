"""The settings of a sweep."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Tuple

from edp_mx.errors import UserError
from edp_mx.runtime.config_files import read_settings
from edp_mx.runtime.limits import MOST_SEED, MOST_WIDE
from edp_mx.runtime.settings import SettingError, Settings, setting
from edp_mx.runtime.yaml_tree import read_layers

Values = Dict[str, Any]  # settings of a trial, by dotted key
Places = Mapping[str, str]  # file and line of a sweep's parameters, by dotted key

RANGES = ("uniform", "log_uniform", "int")


@dataclass(frozen=True)
class SweepConfig(Settings):
    """Which settings are tried.

    Attributes:
        name: of the sweep; by default the name of its file.
        base: configuration files that are merged, with paths relative to the sweep's file.
        parameters: by dotted key a list of values, or a range: `{uniform: [low, high]}`,
            `{log_uniform: [low, high]}` or `{int: [low, high]}`, which include both ends.
        method: how Optuna proposes trials: grid (all combinations of lists), random, or tpe, which
            looks at those before.
        trials: how many at most; by default a whole grid, or 16.
        seed: of the draws, and of the order of a grid; the first n do not depend on `trials`.
        pruner: whether trials are stopped early by their score on validation: none, halving (the
            best 1/eta of those that came so far go on after first_epochs, eta · first_epochs, …),
            or median (one that is worse than half of the others at the same epoch ends).
        first_epochs: no trial is stopped before the end of so many.
        eta: η of halving.

    Source: Akiba et al. 2019, "Optuna"; Bergstra et al. 2011 (TPE); Li et al. 2020, "A System for
    Massively Parallel Hyperparameter Tuning" (halving).
    """

    name: str = "sweep"
    base: Tuple[str, ...] = ()
    parameters: Dict[str, Any] = field(default_factory=dict)
    method: str = setting("grid", one_of=("grid", "random", "tpe"))
    trials: Optional[int] = setting(None, at_least=1, at_most=MOST_WIDE)
    seed: int = setting(0, at_least=0, at_most=MOST_SEED)
    pruner: str = setting("none", one_of=("none", "halving", "median"))
    first_epochs: int = setting(1, at_least=1, at_most=MOST_WIDE)
    eta: int = setting(3, at_least=2, at_most=MOST_WIDE)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.base:
            raise SettingError("base", "must name configuration files, e.g. [../atis_clc.yaml]")
        if not self.parameters:
            raise SettingError("parameters", "must name settings, e.g. training.seed: [0, 1, 2]")
        for key, choices in self.parameters.items():
            _check(key, choices, is_grid=self.method == "grid")


def _check(key: str, choices: Any, *, is_grid: bool) -> None:
    place = f"parameters.{key}"
    if isinstance(choices, list) and choices:
        for choice in choices:
            try:
                json.dumps(choice)
            except (TypeError, ValueError) as error:
                raise SettingError(
                    place,
                    f"{choice} is a {type(choice).__name__}, which no setting is: put it in quotes",
                ) from error
        return
    is_range = isinstance(choices, dict) and len(choices) == 1 and set(choices) <= set(RANGES)
    if not is_range:
        raise SettingError(
            place, f"must be a list of values or a range, e.g. {{uniform: [0, 0.5]}}, not {choices}"
        )
    if is_grid:
        raise SettingError(place, "must be a list, because a grid has no ranges")
    ((kind, ends),) = choices.items()
    kinds = (int,) if kind == "int" else (int, float)
    are_two = isinstance(ends, list) and len(ends) == 2 and all(type(e) in kinds for e in ends)
    if not are_two or not ends[0] < ends[1] or (kind == "log_uniform" and ends[0] <= 0):
        raise SettingError(
            place,
            f"must have a lower and a higher {'whole ' * (kind == 'int')}number"
            f"{' above 0' * (kind == 'log_uniform')} after {kind}, not {ends}",
        )


def load_sweep(path: Path) -> Tuple[SweepConfig, List[Path]]:
    """Read the file of a sweep; return it and the configuration files that it names."""
    config = read_settings([path], (), kind=SweepConfig)
    base = [path.parent / name for name in config.base]
    for file in base:
        if not file.is_file():
            raise UserError(f"{path}: base: there is no {file}")
    return config, base


def places_of(path: Path) -> Places:
    """Return where the file of a sweep sets each parameter."""
    _, origins = read_layers([path])
    return {key[1]: place for key, place in origins.items() if key[0] == "parameters" and key[1:]}
