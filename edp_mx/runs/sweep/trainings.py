"""Trainings below one folder, within a budget: what has a record is not trained again."""

from __future__ import annotations

import fcntl
import logging
import math
import os
import time
from pathlib import Path
from typing import IO, Callable, Iterable, Iterator, List, NamedTuple, Optional, Sequence

from edp_mx.errors import UserError
from edp_mx.runs.record import Record, record_of, records_like
from edp_mx.runs.records import collect
from edp_mx.runs.sweep.processes import Ended, log_of, start, train_all
from edp_mx.runs.sweep.trial import Journal, Trial, folder_of, last_sentence

logger = logging.getLogger(__name__)
_WAIT_FOR_LOCK = 60.0  # seconds; the trainings of a killed call take some to end


class Limits(NamedTuple):
    """What one call may spend: trainings, hours, and how many trainings at once."""

    runs: float = math.inf
    hours: float = math.inf
    at_once: int = 1


class Trainings:
    """A folder of runs that one process at a time fills, and the records that are known.

    Args:
        folder: for the runs, with a journal of what failed.
        workers: Horovod workers of each run.
        records: folders with records of other runs; what is not there is left out.
        is_retried: train again what failed.
        find: returns the records of a configuration among those that are known.
        is_read_only: look records up beside another process; nothing can be trained.
    """

    def __init__(
        self,
        folder: Path,
        *,
        workers: int,
        records: Sequence[Path],
        is_retried: bool = False,
        find: Callable[..., Iterable[Record]] = records_like,
        is_read_only: bool = False,
    ) -> None:
        self.folder, self.workers, self._find = folder, workers, find
        self._lock: Optional[IO[str]] = None
        if not is_read_only:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._lock = _locked(folder / ".lock")
        self._journal = Journal(folder / "journal.jsonl")
        self._failures = {} if is_retried else self._journal.failures()
        places = [path for path in (folder, *records) if path.exists()]
        found = [each.record for each in collect(places) if each.record["hash"]]
        self._records: List[Record] = found

    def close(self) -> None:
        """Let another process work in the folder."""
        if self._lock is not None:
            self._lock.close()

    def look_up(self, trial: Trial) -> None:
        """Give a trial its records, or the error of its last attempt, where there is one."""
        if trial.config is not None:
            trial.records = list(self._find(self._records, trial.config, workers=self.workers))
            trial.error = None if trial.records else self._failures.get(trial.hash)

    def train(
        self,
        trials: Sequence[Trial],
        budget: Budget,
        *,
        later: float = 0.0,
        on_end: Callable[[Ended], None] = lambda _: None,
    ) -> None:
        """Train those that are open, as far as the budget goes.

        Args:
            later: the cost of what will be trained after them, for the time that is left.
            on_end: told of each training that has ended, well or not.
        """
        if self._lock is None:
            raise ValueError("a folder that is only read trains nothing")
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
            workers=self.workers,
            at_once=budget.at_once,
            lock=self._lock.fileno(),
        ):
            self._note(ended)
            budget.note(ended)
            on_end(ended)
            left = sum(trial.cost for trial in trials if trial.is_open) + later
            done = sum(not trial.is_open for trial in trials)
            logger.info(
                "trial %d of %d, %s: %s%s",
                done,
                len(trials),
                ", ".join(f"{key}={value}" for key, value in ended.trial.values.items()),
                _said(ended.trial),
                budget.time_left(left / budget.at_once),
            )

    def run(self, words: Sequence[str], log: Path) -> int:
        """Run another command, which ends with this process; return its exit code."""
        if self._lock is None:
            raise ValueError("a folder that is only read runs nothing")
        threads = int(os.environ.get("OMP_NUM_THREADS") or os.cpu_count() or 1)
        return start(words, log, threads, self._lock.fileno()).wait()

    def _note(self, ended: Ended) -> None:
        """Write down what became of a training."""
        trial, run = ended.trial, ended.run
        if ended.code == 0 and run.has("record"):
            record, trial.is_wanted_again = record_of(run, run.read("results")), False
            trial.records.append(record)
            self._records.append(record)
            self._journal.add("finished", trial, seconds=round(ended.seconds, 1))
            return
        trial.error = last_sentence(log_of(run))
        if ended.code < 0:
            trial.error = f"ended by signal {-ended.code}; {trial.error}"
        self._journal.add("failed", trial, error=trial.error)


class Budget:
    """What this call has spent, and how long the rest will take."""

    def __init__(self, limits: Limits) -> None:
        self.at_once = limits.at_once
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
        """Count a training that has ended."""
        if not ended.trial.error:
            self._seconds += ended.seconds
            self._cost += ended.trial.cost

    def time_left(self, cost: float) -> str:
        """Return the end of a sentence: how long trials of such a cost will take."""
        if not self._cost or not cost:
            return ""
        minutes = self._seconds / self._cost * cost / 60
        return f"; about {minutes:.0f} min left" if minutes >= 1 else "; less than a minute left"


def _said(trial: Trial) -> str:
    if trial.error:
        return f"failed: {trial.error}"
    return "no validation part" if trial.ser is None else f"validation SER {100 * trial.ser:.2f} %"


def _locked(path: Path) -> IO[str]:
    """Open the file that only one process per folder may hold at a time."""
    file = open(path, "w", encoding="utf-8")  # noqa: SIM115 (open as long as the trainings)
    until = time.monotonic() + _WAIT_FOR_LOCK
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return file
        except OSError:
            if time.monotonic() > until:
                raise UserError(f"another process trains in {path.parent}: let it end") from None
            time.sleep(1)
