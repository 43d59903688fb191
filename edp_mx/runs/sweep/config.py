"""The settings of a sweep, and the trials that they ask for."""

from __future__ import annotations

import itertools
import json
import math
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, List, Tuple

from edp_mx.config import load_config
from edp_mx.errors import UserError
from edp_mx.runtime.limits import MOST_SEED, MOST_WIDE
from edp_mx.runtime.settings import SettingError, Settings, setting

Values = Dict[str, Any]  # what a trial sets, by dotted key

RANGES = ("uniform", "log_uniform", "int")
_DRAWS_PER_TRIAL = 50  # how often a trial is drawn anew that was drawn already


@dataclass(frozen=True)
class Halving(Settings):
    """Successive halving: many short trials, of which the best are trained longer.

    Attributes:
        key: the setting that grows from rung to rung.
        rungs: its values, rising.
        eta: η; after each rung, the best 1/η on validation go on to the next.

    Source: Jamieson & Talwalkar 2016, "Non-stochastic Best Arm Identification and Hyperparameter
    Optimization". Departs: a trial is trained anew in each rung, because the schedule of the
    learning rate and of the noise depends on the number of epochs.
    """

    key: str = "training.epochs"
    rungs: Tuple[int, ...] = ()
    eta: int = setting(3, at_least=2, at_most=MOST_WIDE)

    def __post_init__(self) -> None:
        super().__post_init__()
        if list(self.rungs) != sorted(set(self.rungs)):
            raise SettingError("rungs", f"must rise, e.g. [2, 6, 18], not {list(self.rungs)}")


@dataclass(frozen=True)
class SweepConfig(Settings):
    """Which settings are tried.

    Attributes:
        name: of the sweep; by default that of its file.
        base: configuration files that are merged, with paths relative to the sweep's file.
        parameters: by dotted key a list of values, or a range: `{uniform: [low, high]}`,
            `{log_uniform: [low, high]}` or `{int: [low, high]}`, which include both ends.
        method: grid (all combinations of lists), random, or halving.
        trials: how many are drawn, of random and of the first rung of halving.
        seed: of the draws; the first n do not depend on `trials`.
    """

    name: str = "sweep"
    base: Tuple[str, ...] = ()
    parameters: Dict[str, Any] = field(default_factory=dict)
    method: str = setting("grid", one_of=("grid", "random", "halving"))
    trials: int = setting(16, at_least=1, at_most=MOST_WIDE)
    seed: int = setting(0, at_least=0, at_most=MOST_SEED)
    halving: Halving = field(default_factory=Halving)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.base:
            raise SettingError("base", "must name configuration files, e.g. [../atis_clc.yaml]")
        if not self.parameters:
            raise SettingError("parameters", "must name settings, e.g. training.seed: [0, 1, 2]")
        for key, choices in self.parameters.items():
            _check(key, choices, is_grid=self.method == "grid")
        if self.method == "halving" and not self.halving.rungs:
            raise SettingError("halving.rungs", "must have values, e.g. [2, 6, 18]")
        if self.method == "halving" and self.halving.key in self.parameters:
            raise SettingError(
                f"parameters.{self.halving.key}", "must be left out: halving sets it by rung"
            )

    def proposals(self) -> List[Values]:
        """Return what the trials, or those of the first rung, set."""
        if self.method == "grid":
            grid = itertools.product(*self.parameters.values())
            return [dict(zip(self.parameters, values)) for values in grid]
        found: Dict[str, Values] = {}
        for number in range(self.trials * _DRAWS_PER_TRIAL):
            if len(found) < self.trials:
                values = self._draw(random.Random(f"{self.seed}/{number}"))
                found.setdefault(json.dumps(values), values)
        return list(found.values())

    def _draw(self, generator: random.Random) -> Values:
        return {key: _draw(choices, generator) for key, choices in self.parameters.items()}


def _check(key: str, choices: Any, *, is_grid: bool) -> None:
    place = f"parameters.{key}"
    if isinstance(choices, list) and choices:
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


def _draw(choices: Any, generator: random.Random) -> Any:
    """Draw a value; one from a range has four digits, so that it can be written down."""
    if isinstance(choices, list):
        return generator.choice(choices)
    ((kind, (low, high)),) = choices.items()
    if kind == "int":
        return generator.randint(low, high)
    if kind == "uniform":
        value = generator.uniform(low, high)
    else:
        value = math.exp(generator.uniform(math.log(low), math.log(high)))
    return min(max(float(f"{value:.4g}"), low), high)


def load_sweep(path: Path) -> Tuple[SweepConfig, List[Path]]:
    """Read the file of a sweep; return it and the configuration files that it names."""
    config = load_config(path, kind=SweepConfig)
    base = [path.parent / name for name in config.base]
    for file in base:
        if not file.is_file():
            raise UserError(f"{path}: base: there is no {file}")
    return config, base


def overrides_of(values: Values) -> List[str]:
    """Return the settings of a trial as `--set` takes them."""
    return [f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in values.items()]
