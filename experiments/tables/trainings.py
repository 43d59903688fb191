"""Trainings below one folder, within a budget: a run with a record is not trained again."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Callable, Dict, Iterator, Optional, Sequence

from edp_mx.runs.record import record_of
from edp_mx.runs.records import collect
from edp_mx.runs.sweep.budget import Budget, locked
from edp_mx.runs.sweep.processes import Ended, start, train_all
from edp_mx.runs.sweep.trial import Trial, folder_of
from edp_mx.runtime.json_text import parse_json
from edp_mx.runtime.threads import allowed_threads

logger = logging.getLogger(f"edp_mx.{__name__}")  # whose lines are shown


@dataclass
class TableTrial(Trial):
    """A training of a table.

    Attributes:
        is_wanted_again: it is to be trained although it has records.
    """

    is_wanted_again: bool = False

    @property
    def is_open(self) -> bool:
        """Whether it is still to be trained."""
        return super().is_open or (self.is_wanted_again and self.error is None)


class Trainings:
    """A folder of runs that one process at a time fills, and the records that are known.

    Args:
        folder: for the runs, with a journal of failures.
        workers: Horovod workers of each run.
        kept: the folder with records of other runs, if it is there.
        is_retried: train failed runs again.
        is_read_only: look records up beside another process; nothing can be trained.

    Attributes:
        records: of all runs that are known.
        failures: the errors of trials that failed, by hash.
    """

    def __init__(
        self,
        folder: Path,
        *,
        workers: int,
        kept: Path,
        is_retried: bool = False,
        is_read_only: bool = False,
    ) -> None:
        self.folder, self.workers = folder, workers
        self._lock: Optional[IO[str]] = None
        if not is_read_only:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._lock = locked(folder / ".lock")
        self._journal = folder / "journal.jsonl"
        self.failures = {} if is_retried else _failures_in(self._journal)
        places = [path for path in (folder, kept) if path.exists()]
        self.records = [each.record for each in collect(places)]

    def close(self) -> None:
        """Let another process work in the folder."""
        if self._lock is not None:
            self._lock.close()

    def train(
        self,
        trials: Sequence[TableTrial],
        budget: Budget,
        *,
        on_end: Callable[[Ended[TableTrial]], None] = lambda _: None,
    ) -> None:
        """Train the open ones, as far as the budget goes; `on_end` is told of each."""
        if self._lock is None:
            raise ValueError("a folder that is only read trains nothing")
        waiting = [trial for trial in trials if trial.is_open]
        logger.info("%d trials, %d of them to be trained", len(trials), len(waiting))

        def permitted() -> Iterator[TableTrial]:
            for trial in waiting:
                if not budget.permits():
                    return
                _write_down(self._journal, "begun", trial)
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
            left, count = sum(trial.is_open for trial in trials), len(trials)
            said = f"{ended.trial.described()}{budget.time_left(left)}"
            logger.info("trial %d of %d, %s", count - left, count, said)

    def run(self, words: Sequence[str], log: Path) -> int:
        """Run another command, which ends with this process; return its exit code."""
        if self._lock is None:
            raise ValueError("a folder that is only read runs nothing")
        return start(words, log, allowed_threads(), self._lock.fileno()).wait()

    def _note(self, ended: Ended[TableTrial]) -> None:
        trial, run = ended.trial, ended.run
        if ended.code == 0 and run.has("record"):
            record, trial.is_wanted_again = record_of(run), False
            trial.records.append(record)
            self.records.append(record)
            _write_down(self._journal, "finished", trial, seconds=round(ended.seconds, 1))
            return
        trial.error = ended.error
        _write_down(self._journal, "failed", trial, error=trial.error)


def _write_down(journal: Path, event: str, trial: TableTrial, **facts: Any) -> None:
    """Append a line, on disk when this returns."""
    date = time.strftime("%Y-%m-%dT%H:%M:%S")
    line = {"date": date, "event": event, "hash": trial.hash, "set": trial.values, **facts}
    torn = journal.exists() and not journal.read_bytes().endswith(b"\n")
    with open(journal, "a", encoding="utf-8") as file:
        file.write("\n" * torn + json.dumps(line, ensure_ascii=False) + "\n")
        file.flush()
        os.fsync(file.fileno())


def _failures_in(journal: Path) -> Dict[str, str]:
    """The errors of the trials that failed, by hash; records say which are finished."""
    found: Dict[str, str] = {}
    for line in journal.read_bytes().splitlines() if journal.exists() else ():
        with contextlib.suppress(ValueError, KeyError, TypeError):  # a torn line
            row = parse_json(line)
            if row["event"] == "failed":
                found[str(row["hash"])] = f"{row['error']} (--retry trains it again)"
    return found
