"""Trainings side by side, each `edp-mx train` in processes of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Callable, Generic, Iterator, List, Optional, Sequence, Tuple, TypeVar

from edp_mx.runs.interrupted import has_begun
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runs.sweep.trial import Trial, last_sentence
from edp_mx.runtime.config_files import overrides_of
from edp_mx.runtime.processes import end_with_parent, launcher
from edp_mx.runtime.threads import allowed_threads

PAUSE = 0.2  # seconds between two looks at the processes


T = TypeVar("T", bound=Trial)


@dataclass(frozen=True)
class Ended(Generic[T]):
    """A training that has ended, well or not."""

    trial: T
    run: RunDirectory
    code: int
    seconds: float

    @property
    def error(self) -> str:
        """Its last sentence, if it did not end well."""
        said = last_sentence(log_of(self.run))
        return said if self.code >= 0 else f"ended by signal {-self.code}; {said}"


def command(trial: Trial, run: RunDirectory, workers: int) -> List[str]:
    """Return the command that trains a trial, or resumes it where its run was interrupted."""
    program = launched(["edp_mx", "train"], workers)
    if has_begun(run):
        return [*program, "--resume", str(run.path)]
    return [
        *program,
        *(str(path) for path in trial.base),
        *("--run", str(run.path), "--set", *overrides_of(trial.values)),
    ]


def launched(module: Sequence[str], workers: int) -> List[str]:
    """Return the beginning of a command: a module and its words, behind the launcher."""
    program = [sys.executable, "-m", *module]
    if workers == 1:
        return program
    hosts, nic = os.environ.get("HOSTS"), os.environ.get("NIC")
    return [*launcher(workers, hosts=hosts, nic=nic), *program]


def train_all(
    trials: Iterator[T],
    run_of: Callable[[T], RunDirectory],
    *,
    workers: int,
    at_once: int,
    lock: int,
    is_hopeless: Callable[[T, RunDirectory], bool] = lambda *_: False,
) -> Iterator[Ended[T]]:
    """Train trials, some at once, and yield each that has ended.

    A training ends with this process, even if this one is killed; until then it holds the file
    descriptor `lock`, so that nobody resumes its run beside it.

    Args:
        is_hopeless: asked again and again of each training; one that is gets a SIGTERM.
    """
    training: List[Tuple[T, RunDirectory, subprocess.Popen, float]] = []
    shared = 1 if os.environ.get("OMP_NUM_THREADS") else workers  # it is given for each worker
    threads = allowed_threads() // shared // at_once
    try:
        while True:
            for trial in islice(trials, at_once - len(training)):
                run = run_of(trial)
                process = start(command(trial, run, workers), log_of(run), threads, lock)
                training.append((trial, run, process, time.monotonic()))
            if not training:
                return
            time.sleep(PAUSE)
            for trial, run, process, _ in training:
                if not trial.error and process.poll() is None and is_hopeless(trial, run):
                    process.terminate()
            for each in [each for each in training if each[2].poll() is not None]:
                training.remove(each)
                trial, run, process, began = each
                yield Ended(trial, run, process.returncode, time.monotonic() - began)
    finally:
        end([process for _, _, process, _ in training])


def end(processes: Sequence[subprocess.Popen]) -> None:
    """Ask processes to end, and wait until they have."""
    for process in processes:
        process.terminate()
    for process in processes:
        process.wait()


def start(
    words: Sequence[str], log: Path, threads: int, lock: Optional[int] = None
) -> subprocess.Popen:
    """Start a command that ends with this process, its output appended to a log.

    It holds the file descriptor `lock` until it ends.
    """
    with open(log, "ab") as output:
        return subprocess.Popen(
            words,
            env={**os.environ, "OMP_NUM_THREADS": str(max(1, threads))},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=() if lock is None else (lock,),
            preexec_fn=end_with_parent,
        )


def log_of(run: RunDirectory) -> Path:
    """Return the file beside a run with the output of its training."""
    return run.path.parent / f"{run.path.name}.log"
