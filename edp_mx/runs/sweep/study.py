"""The study of a sweep: Optuna proposes the trials, and its journal file says what became of them.

One process at a time has the folder. A trial that is still running in the journal when the file is
opened is therefore one of a call that was killed, and goes on.
"""

from __future__ import annotations

import hashlib
import json
import random
import zlib
from itertools import product
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional, Union

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, TrialState

from edp_mx.runs.sweep.config import SweepConfig
from edp_mx.runs.sweep.trial import Values
from edp_mx.runtime.json_text import parse_json

JOURNAL = "study.jsonl"
DRAWN = 16  # trials of a random search, and of TPE, where the file does not say how many
_AGAIN, _ERROR = "again", "error"  # user attributes of a trial


class Study:
    """The trials of a sweep, those of earlier calls among them.

    Args:
        config: the sweep. With other parameters or another method a new study begins.
        folder: that has its journal.
        settings: on which the trials are laid; with others a new study begins too.
        is_retried: propose failed trials again.
    """

    def __init__(
        self, config: SweepConfig, folder: Path, *, settings: Dict[str, Any], is_retried: bool
    ) -> None:
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._config = config
        self._space = {key: distribution_of(each) for key, each in config.parameters.items()}
        path = folder / JOURNAL
        _drop_torn_line(path)
        self._study = optuna.create_study(
            storage=JournalStorage(JournalFileBackend(str(path))),
            study_name=f"{config.name}-{_hash_of(config, settings)}",
            pruner=pruner_of(config),
            load_if_exists=True,
        )
        if is_retried:
            self._propose_failed_again()

    def asked(self) -> Iterator[optuna.Trial]:
        """Yield the trials to be made: those that a killed call left, then new ones."""
        for left in self._of(TrialState.RUNNING):
            trial = optuna.Trial(self._study, left._trial_id)
            for name, distribution in self._space.items():
                trial._suggest(name, distribution)  # what it had, unless the call was killed in it
            yield trial
        while self._of(TrialState.WAITING) or self._new():
            if self._config.method == "grid" and not self._of(TrialState.WAITING):
                grid = self._grid()
                self._study.enqueue_trial(grid[len(grid) - self._new()])
            self._study.sampler = self._sampler()
            yield self._study.ask(self._space)

    def finished(self) -> List[FrozenTrial]:
        """Return the reported trials, in the order in which they were proposed."""
        return self._of(TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL)

    def left(self) -> int:
        """Return how many trials are not finished."""
        return len(self._of(TrialState.RUNNING, TrialState.WAITING)) + self._new()

    def _of(self, *states: TrialState) -> List[FrozenTrial]:
        return self._study.get_trials(deepcopy=False, states=states)

    def values(self, trial: Union[optuna.Trial, FrozenTrial]) -> Values:
        """Return the settings of a trial, by dotted key."""
        return {key: _value_of(each, trial.params[key]) for key, each in self._space.items()}

    def is_hopeless(self, trial: optuna.Trial, costs: Mapping[int, float]) -> bool:
        """Report the score of a trial after each epoch; return whether it is to be stopped."""
        known = self._study.get_trials(deepcopy=False)[trial.number].intermediate_values
        new = {epoch: cost for epoch, cost in costs.items() if epoch not in known}
        for epoch, cost in new.items():
            trial.report(cost, epoch)
        return bool(new) and trial.should_prune()

    def tell(self, trial: optuna.Trial, cost: float) -> None:
        self._study.tell(trial.number, cost)

    def tell_failed(self, trial: optuna.Trial, error: str, *, is_stopped: bool) -> None:
        """Report why a trial failed, or was stopped before its end."""
        trial.set_user_attr(_ERROR, error)
        state = TrialState.PRUNED if is_stopped else TrialState.FAIL
        self._study.tell(trial.number, state=state)

    def _propose_failed_again(self) -> None:
        known = [trial for trial in self.finished() if _AGAIN not in trial.user_attrs]
        for failed in (trial for trial in known if trial.state == TrialState.FAIL):
            self._study.enqueue_trial(failed.params, user_attrs={_AGAIN: failed.number})

    def _new(self) -> int:
        """How many trials are still to be proposed for the first time."""
        trials = self._study.get_trials(deepcopy=False)
        count = sum(_AGAIN not in trial.user_attrs for trial in trials)
        is_grid = self._config.method == "grid"
        most = len(self._grid()) if is_grid else self._config.trials or DRAWN
        return max(0, most - count)

    def _grid(self) -> List[Dict[str, Any]]:
        """The combinations that are tried, in an order that the seed draws."""
        lists = [each.choices for each in self._space.values()]  # type: ignore[attr-defined]
        grid = [dict(zip(self._space, values)) for values in product(*lists)]
        random.Random(self._config.seed).shuffle(grid)
        return grid[: self._config.trials]

    def _sampler(self) -> optuna.samplers.BaseSampler:
        """A sampler whose draws depend on the seed and on the trials so far, not on calls."""
        number = len(self._study.get_trials(deepcopy=False))
        seed = zlib.crc32(f"{self._config.seed}/{number}".encode())
        if self._config.method == "tpe":
            return optuna.samplers.TPESampler(seed=seed)
        return optuna.samplers.RandomSampler(seed=seed)


def pruner_of(config: SweepConfig) -> optuna.pruners.BasePruner:
    """Return what stops trials early, by their score on validation at the end of each epoch."""
    if config.pruner == "halving":
        return optuna.pruners.SuccessiveHalvingPruner(
            min_resource=config.first_epochs, reduction_factor=config.eta
        )
    if config.pruner == "median":
        return optuna.pruners.MedianPruner(n_warmup_steps=config.first_epochs)
    return optuna.pruners.NopPruner()


def distribution_of(choices: Any) -> BaseDistribution:
    """Return what Optuna draws from; values of a list as JSON, since a setting may be a list."""
    if isinstance(choices, list):
        return CategoricalDistribution([json.dumps(each, ensure_ascii=False) for each in choices])
    ((kind, (low, high)),) = choices.items()
    if kind == "int":
        return IntDistribution(low, high)
    return FloatDistribution(low, high, log=kind == "log_uniform")


def _value_of(distribution: BaseDistribution, drawn: Any) -> Any:
    """The value of a draw: one from a range has four digits, so that it can be written down."""
    if isinstance(distribution, CategoricalDistribution):
        return parse_json(drawn)
    if isinstance(distribution, FloatDistribution):
        return min(max(float(f"{drawn:.4g}"), distribution.low), distribution.high)
    return drawn


def error_of(trial: FrozenTrial) -> Optional[str]:
    """Return why a trial failed or was stopped; None if it was not."""
    return None if trial.state == TrialState.COMPLETE else trial.user_attrs.get(_ERROR, "unknown")


def _hash_of(config: SweepConfig, settings: Dict[str, Any]) -> str:
    """Sixteen digits for all that its trials have in common."""
    said = [config.parameters, config.method, config.pruner, config.first_epochs, config.eta]
    text = json.dumps([*said, config.seed, settings], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _drop_torn_line(path: Path) -> None:
    """Cut off the beginning of a line that a killed call has left at the end of a journal."""
    if path.exists():
        whole = path.read_bytes().rpartition(b"\n")
        if whole[2]:
            with path.open("r+b") as file:
                file.truncate(len(whole[0]) + len(whole[1]))
    path.with_name(f"{path.name}.lock").unlink(missing_ok=True)  # ours alone is the folder
