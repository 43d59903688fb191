"""A whole sweep: trains what has no record yet, rung by rung, and goes on after an interruption."""

from __future__ import annotations

from pathlib import Path
from typing import Dict, List, Optional, Sequence, Tuple

from edp_mx.errors import UserError
from edp_mx.runs.sweep.config import SweepConfig, Values
from edp_mx.runs.sweep.trainings import Budget, Limits, Trainings
from edp_mx.runs.sweep.trial import Trial


def promoted(trials: Sequence[Tuple[Values, Optional[float]]], eta: int) -> List[Values]:
    """Return what the best 1/η of the trials of a rung set, at least one; the best first.

    Args:
        trials: what each sets, and its validation SER; None if it failed.

    Example:
        >>> rung = [({"seed": 0}, 0.3), ({"seed": 1}, None), ({"seed": 2}, 0.1), ({"seed": 3}, 0.2)]
        >>> promoted(rung, eta=2)
        [{'seed': 2}, {'seed': 3}]
    """
    scored = [(ser, values) for values, ser in trials if ser is not None]
    best = sorted(scored, key=lambda pair: pair[0])
    return [values for _, values in best[: max(1, len(trials) // eta)]]


class Sweep:
    """The trials of a sweep and the folder that has their runs."""

    def __init__(
        self,
        config: SweepConfig,
        base: List[Path],
        folder: Path,
        *,
        workers: int,
        records: Sequence[Path],
        is_retried: bool = False,
    ) -> None:
        self.config, self.base, self.folder = config, base, folder
        self._trainings = Trainings(folder, workers=workers, records=records, is_retried=is_retried)
        self.trials: List[Trial] = []

    @property
    def rung_key(self) -> Optional[str]:
        """The setting that grows from rung to rung; None without rungs."""
        return self.config.halving.key if self.config.method == "halving" else None

    def close(self) -> None:
        """Let another sweep work in the folder."""
        self._trainings.close()

    def run(self, limits: Limits) -> bool:
        """Train until all is done or the limits are reached; return whether all is done.

        Raises:
            UserError: the settings of every trial are refused.
        """
        rungs: Sequence[Optional[int]] = self.config.halving.rungs if self.rung_key else (None,)
        proposals = self.config.proposals()
        budget = Budget(limits)
        for number, rung in enumerate(rungs):
            trials = self._trials(proposals, rung)
            self.trials += trials
            later = _cost_of_later(len(trials), rungs[number + 1 :], self.config.halving.eta)
            self._trainings.train(trials, budget, later=later)
            if any(trial.is_open for trial in trials):
                return False
            key = self.config.halving.key
            scored = [(_without(trial.values, key), trial.ser) for trial in trials]
            proposals = promoted(scored, self.config.halving.eta)
        return True

    def _trials(self, proposals: Sequence[Values], rung: Optional[int]) -> List[Trial]:
        """Return the trials of a rung, with what is known of them."""
        added = {} if rung is None else {self.config.halving.key: rung}
        cost = 1.0 if rung is None else float(rung)
        made = [
            Trial.of({**values, **added}, self.base, workers=self._trainings.workers, cost=cost)
            for values in proposals
        ]
        if made and all(trial.error for trial in made):
            raise UserError(str(made[0].error))
        distinct: Dict[str, Trial] = {}
        for trial in made:
            distinct.setdefault(trial.hash or repr(trial.values), trial)
            self._trainings.look_up(trial)
        return list(distinct.values())


def _cost_of_later(count: int, rungs: Sequence[Optional[int]], eta: int) -> float:
    """The cost of the rungs that follow one of `count` trials."""
    cost = 0.0
    for rung in rungs:
        count = max(1, count // eta)
        cost += count * (rung or 1)
    return cost


def _without(values: Values, key: str) -> Values:
    return {name: value for name, value in values.items() if name != key}
