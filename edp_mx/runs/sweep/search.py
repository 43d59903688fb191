"""A whole sweep: trains the trials that Optuna proposes, and goes on after an interruption."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Dict, Iterator, List, Optional, Sequence

from optuna import Trial as Proposed
from optuna.trial import TrialState

from edp_mx.dp.accounting.ledger import LedgerFile, read_ledger
from edp_mx.errors import UserError
from edp_mx.runs.interrupted import has_begun
from edp_mx.runs.record import record_of, records_like
from edp_mx.runs.records import collect
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runs.sweep.budget import Budget, locked
from edp_mx.runs.sweep.config import Places, SweepConfig
from edp_mx.runs.sweep.processes import Ended, train_all
from edp_mx.runs.sweep.study import Study, error_of
from edp_mx.runs.sweep.trial import Attempts, Trial, folder_of
from edp_mx.runtime.console_text import count_of
from edp_mx.runtime.yaml_tree import read_layers

LOST = "neither its run nor a record of it is here"

logger = logging.getLogger(__name__)


class Sweep:
    """The trials of a sweep and the folder that has their runs.

    Args:
        base: the configuration files on which each trial is laid.
        places: where the sweep's file has each parameter.
        records: folders and files with records of other runs, which are not trained again.
        is_retried: train failed trials again.

    Attributes:
        trials: that were made or are known from records, each setting once.
    """

    def __init__(
        self,
        config: SweepConfig,
        base: List[Path],
        folder: Path,
        *,
        workers: int,
        records: Sequence[Path],
        places: Optional[Places] = None,
        is_retried: bool = False,
    ) -> None:
        self.base, self.folder, self.workers, self._places = base, folder, workers, places
        self._is_pruned = config.pruner != "none"
        settings, _ = read_layers(base)
        if RunDirectory(folder).config.exists():
            raise UserError(f"{folder} is a run directory; name another folder with --out")
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._lock = locked(folder / ".lock")
        self._attempts = Attempts(folder)
        known = [path for path in (folder, *records) if path.exists()]
        self._records = [each.record for each in collect(known)]
        self._study = Study(
            config, folder, settings={**settings, "workers": workers}, is_retried=is_retried
        )
        self._found: Dict[str, Trial] = {}
        self._proposed: Dict[str, Proposed] = {}  # of the trials that are being trained
        for told in self._study.finished():
            trial = self._trial(self._study.values(told))
            if not trial.records:
                trial.error = error_of(told) or LOST
                trial.is_stopped = told.state == TrialState.PRUNED
        for key in [k for k, each in self._found.items() if is_retried and each.error]:
            del self._found[key]

    @property
    def trials(self) -> List[Trial]:
        return [trial for trial in self._found.values() if not trial.is_open]

    def close(self) -> None:
        """Let another sweep work in the folder."""
        self._lock.close()

    def run(self, budget: Budget) -> bool:
        """Train until all is done or the budget is spent; return whether all is done.

        Raises:
            UserError: the settings of every trial are refused.
        """
        for ended in train_all(
            self._permitted(budget),
            self._begin,
            workers=self.workers,
            at_once=budget.at_once,
            lock=self._lock.fileno(),
            is_hopeless=self._is_hopeless,
        ):
            self._note(ended)
            budget.note(ended)
            left = self._study.left()
            logger.info("%s left%s", count_of(left, "trial"), budget.time_left(left))
        if self.trials and all(trial.config is None for trial in self.trials):
            raise UserError(str(self.trials[0].error))
        return not self._study.left()

    def _begin(self, trial: Trial) -> RunDirectory:
        run = folder_of(trial, self.folder, noted=self._attempts.names())
        self._attempts.note(run)
        return run

    def _permitted(self, budget: Budget) -> Iterator[Trial]:
        """Yield the trials to be trained; report the known scores of the others to the study."""
        for proposed in self._study.asked():
            trial = self._trial(self._study.values(proposed))
            if not trial.is_open:
                self._tell(proposed, trial)
            elif trial.hash not in self._proposed:
                if not budget.permits():
                    return  # the next call goes on with it
                self._proposed[trial.hash] = proposed
                yield trial
            else:  # the same is being trained
                self._study.tell_failed(proposed, "is trained already", is_stopped=False)

    def _trial(self, values: Dict[str, object]) -> Trial:
        """Return the trial of some settings, with the records of its runs."""
        trial = Trial.of(values, self.base, workers=self.workers, places=self._places)
        if trial.config is not None:
            found = records_like(self._records, trial.config, workers=self.workers)
            trial.records = list(found)
        return self._found.setdefault(trial.hash or repr(values), trial)

    def _is_hopeless(self, trial: Trial, run: RunDirectory) -> bool:
        """Report the finished epochs to the study; return whether a training is to stop."""
        if not self._is_pruned:
            return False
        metric = trial.task.metric
        scores = {int(row["epoch"]): row[metric.key] / metric.factor for row in run.epochs()}
        costs = {epoch: metric.cost(score) for epoch, score in scores.items()}
        if self._study.is_hopeless(self._proposed[trial.hash], costs):
            epoch, score = max(scores.items())
            trial.is_stopped = True
            named = f"{'an' if metric.name[0] in 'aeiou' else 'a'} {metric.name}"
            trial.error = f"after epoch {epoch} at {named} of {metric.said(score)} on validation"
        return trial.is_stopped

    def _note(self, ended: Ended[Trial]) -> None:
        """Report the end of a training to the study."""
        trial, run = ended.trial, ended.run
        if ended.code and not has_begun(run):
            self._attempts.forget(run)
        if ended.code == 0 and run.has("record"):
            trial.error, trial.is_stopped = None, False  # it came to its end before it was stopped
            record = record_of(run)
            trial.records.append(record)
            self._records.append(record)
        elif trial.is_stopped:
            if run.ledger.exists():  # the whole plan counts: the stop depends on what was released
                LedgerFile(run.ledger, read_ledger(run.ledger).plan).stop()
        else:
            trial.error = ended.error
        self._tell(self._proposed.pop(trial.hash), trial)
        logger.info("trial %d, %s", len(self.trials), trial.described())

    def _tell(self, proposed: Proposed, trial: Trial) -> None:
        if trial.score is None:
            trial.error = trial.error or "has no validation part to be ranked by"
        if trial.error:
            self._study.tell_failed(proposed, trial.error, is_stopped=trial.is_stopped)
        else:
            self._study.tell(proposed, trial.cost)
