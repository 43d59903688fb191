"""A whole sweep: trains what has no record yet, rung by rung, and goes on after an interruption."""

from __future__ import annotations

import fcntl
import logging
import math
import time
from pathlib import Path
from typing import IO, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from edp_mx.errors import UserError
from edp_mx.runs.record import Record, find_record
from edp_mx.runs.records import collect
from edp_mx.runs.sweep.config import SweepConfig, Values
from edp_mx.runs.sweep.processes import Ended, log_of, train_all
from edp_mx.runs.sweep.trial import Journal, Trial, folder_of, last_sentence

logger = logging.getLogger(__name__)
_WAIT_FOR_LOCK = 60.0  # seconds; the trainings of a killed sweep take some to end


class Limits(NamedTuple):
    """What one call may spend: trainings, hours, and how many trainings at once."""

    runs: float = math.inf
    hours: float = math.inf
    at_once: int = 1


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
        self.config, self.base, self.folder, self.workers = config, base, folder, workers
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._lock = _locked(folder / ".lock")
        self._journal = Journal(folder / "journal.jsonl")
        self._failures = {} if is_retried else self._journal.failures()
        places = [path for path in (folder, *records) if path.exists()]
        found = [each.record for each in collect(places) if each.record["hash"]]
        self._records: List[Record] = found
        self.trials: List[Trial] = []

    def close(self) -> None:
        """Let another sweep work in the folder."""
        self._lock.close()

    def run(self, limits: Limits) -> bool:
        """Train until all is done or the limits are reached; return whether all is done.

        Raises:
            UserError: the settings of every trial are refused.
        """
        is_halving = self.config.method == "halving"
        rungs: Sequence[Optional[int]] = self.config.halving.rungs if is_halving else (None,)
        proposals = self.config.proposals()
        budget = _Budget(limits)
        for number, rung in enumerate(rungs):
            trials = self._trials(proposals, rung)
            self.trials += trials
            later = _cost_of_later(len(trials), rungs[number + 1 :], self.config.halving.eta)
            self._train(trials, budget, later, limits.at_once)
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
            Trial.of({**values, **added}, self.base, workers=self.workers, cost=cost)
            for values in proposals
        ]
        if made and all(trial.error for trial in made):
            raise UserError(str(made[0].error))
        distinct: Dict[str, Trial] = {}
        for trial in made:
            distinct.setdefault(trial.hash or repr(trial.values), trial)
            if trial.config is not None:
                trial.record = find_record(self._records, trial.config, workers=self.workers)
                trial.error = None if trial.record else self._failures.get(trial.hash)
        return list(distinct.values())

    def _train(self, trials: Sequence[Trial], budget: _Budget, later: float, at_once: int) -> None:
        """Train those that are open, as far as the budget goes."""
        waiting = [trial for trial in trials if trial.is_open]
        logger.info("%d trials, %d of them to be trained", len(trials), len(waiting))

        def permitted() -> Iterator[Trial]:
            for trial in waiting:
                if not budget.permits():
                    return
                self._journal.add("begun", trial)
                yield trial

        for ended in train_all(
            permitted(),
            lambda trial: folder_of(trial, self.folder),
            self.base,
            workers=self.workers,
            at_once=at_once,
            lock=self._lock.fileno(),
        ):
            self._note(ended)
            budget.note(ended)
            left = sum(trial.cost for trial in trials if trial.is_open) + later
            done = sum(not trial.is_open for trial in trials)
            logger.info(
                "trial %d of %d, %s: %s%s",
                done,
                len(trials),
                ", ".join(f"{key}={value}" for key, value in ended.trial.values.items()),
                _said(ended.trial),
                budget.time_left(left / at_once),
            )

    def _note(self, ended: Ended) -> None:
        """Write down what became of a training."""
        trial, run = ended.trial, ended.run
        if ended.code == 0 and run.has("record"):
            trial.record = run.read("record")
            self._records.append(run.read("record"))
            self._journal.add("finished", trial, seconds=round(ended.seconds, 1))
            return
        trial.error = last_sentence(log_of(run))
        if ended.code < 0:
            trial.error = f"ended by signal {-ended.code}; {trial.error}"
        self._journal.add("failed", trial, error=trial.error)


class _Budget:
    """What this call has spent, and how long the rest will take."""

    def __init__(self, limits: Limits) -> None:
        self._limits, self._began = limits, time.monotonic()
        self._runs = 0
        self._seconds = self._cost = 0.0

    def permits(self) -> bool:
        """Return whether one more training may begin; count it if so."""
        hours = (time.monotonic() - self._began) / 3600
        if self._runs >= self._limits.runs or hours >= self._limits.hours:
            return False
        self._runs += 1
        return True

    def note(self, ended: Ended) -> None:
        if ended.trial.record is not None:
            self._seconds += ended.seconds
            self._cost += ended.trial.cost

    def time_left(self, cost: float) -> str:
        """Return the end of a sentence: how long trials of such a cost will take."""
        if not self._cost or not cost:
            return ""
        minutes = self._seconds / self._cost * cost / 60
        return f"; about {minutes:.0f} min left" if minutes >= 1 else "; less than a minute left"


def _cost_of_later(count: int, rungs: Sequence[Optional[int]], eta: int) -> float:
    """The cost of the rungs that follow one of `count` trials."""
    cost = 0.0
    for rung in rungs:
        count = max(1, count // eta)
        cost += count * (rung or 1)
    return cost


def _without(values: Values, key: str) -> Values:
    return {name: value for name, value in values.items() if name != key}


def _said(trial: Trial) -> str:
    if trial.error:
        return f"failed: {trial.error}"
    return "no validation part" if trial.ser is None else f"validation SER {100 * trial.ser:.2f} %"


def _locked(path: Path) -> IO[str]:
    """Open the file that only one sweep of a folder may hold at a time."""
    file = open(path, "w", encoding="utf-8")  # noqa: SIM115 (open as long as the sweep)
    until = time.monotonic() + _WAIT_FOR_LOCK
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return file
        except OSError:
            if time.monotonic() > until:
                raise UserError(f"another sweep works in {path.parent}: wait for its end") from None
            time.sleep(1)
