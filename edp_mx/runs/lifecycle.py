"""A run from its start to its end: settings, directory, lock, log, and cleaning up a failure."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Callable, Optional, Sequence, Tuple, Union

from edp_mx.config import ExperimentConfig, Overrides, dump_config, load_config, read_dumped
from edp_mx.data.config import overlap
from edp_mx.errors import UserError
from edp_mx.runs.interrupted import (
    after_interruption,
    has_begun,
    make_way,
    refuse_other_workers,
    remove,
)
from edp_mx.runs.record import absent_files
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.distributed import Workers, start
from edp_mx.runtime.processes import interrupt, on_ending
from edp_mx.runtime.progress import Progress, progress_bar, start_logging
from edp_mx.runtime.watchdog import Parting
from edp_mx.training.log import refuse_absent_tracker

# work(config, workers, directory, progress, parting) is done by each worker.
Work = Callable[[Any, Workers, RunDirectory, Progress, Parting], Any]


@dataclass(frozen=True)
class RunRequest:
    """A request to start or resume a run; the options of `edp-mx train` have the same names.

    Attributes:
        configs: YAML files; the keys of each override those of the files before it.
        overrides: settings laid over the files.
        checked: settings that were read already, in place of both.
        resume: the interrupted run to go on with, in place of all three.
        run_directory: where the run is to be; a new folder below `runs` if None.
        suffix: of the new folder's name, behind the configuration's; none for a training, which
            alone can be resumed.
        readme: template of the run's README; by default that of a training.
    """

    configs: Sequence[Union[str, Path]] = ()
    overrides: Overrides = ()
    checked: Optional[ExperimentConfig] = None
    resume: Optional[Path] = None
    run_directory: Union[str, Path, None] = None
    runs: Path = Path("runs")
    suffix: str = ""
    readme: str = ""

    def config(self) -> Any:
        """Return the named settings, or the settings of the run to resume."""
        if self.resume is None:
            return self.checked or load_config(self.configs, self.overrides)
        return load_config(RunDirectory.unfinished(self.resume).config)

    def create(self, config: Any, *, num_workers: int = 1) -> RunDirectory:
        """Create the run directory, on rank 0; one that a failed start left is made anew."""
        if not self.run_directory:
            directory = RunDirectory.choose(f"{config.name}{self.suffix}", self.runs)
        else:
            directory = RunDirectory(Path(self.run_directory))
            if not any(overlap(each, directory.path) for each in self.configs):
                make_way(directory)
        resume = directory.resume_command(num_workers)
        directory.create(config.name, dump_config(config), readme=self.readme, resume=resume)
        return directory


def carry_out(request: RunRequest, work: Work) -> Tuple[Workers, RunDirectory]:
    """Open the run directory and work in it, locked.

    A failed start leaves no folder. After Ctrl-C, or where a file of a run that has begun could not
    be written, the console has the command that resumes it.
    """
    workers = start()
    with ExitStack() as stack:
        # Rank 0 prepares the directory; no worker writes before it exists.
        settings, path = workers.on_first(lambda: _open(request, workers, stack))
        config = read_dumped(settings)
        directory, is_new = RunDirectory(Path(path)), request.resume is None
        resume = "" if request.suffix else directory.resume_command(workers.size)
        parting = partial(after_interruption, directory, resume, is_new=is_new)
        stack.callback(on_ending(interrupt))  # until the watchdog takes over
        try:
            work(config, workers, directory, enter_run(directory, workers), parting)
        except BaseException as error:
            if workers.is_first:
                begun = has_begun(directory)
                if isinstance(error, KeyboardInterrupt) or (begun and _is_of_files(error)):
                    sys.stderr.writelines(f"edp-mx: {line}\n" for line in parting())
                elif is_new and not begun:
                    remove(directory)
            raise
    return workers, directory


def _is_of_files(error: Optional[BaseException]) -> bool:
    """Return whether an error began with a file that could not be read or written."""
    while error is not None and not isinstance(error, OSError):
        error = error.__cause__
    return error is not None


def refuse_absent(config: Any) -> None:
    """Refuse settings that name files, or a tracker, which are not there."""
    refuse_absent_tracker(config.training.tracking)
    absent = absent_files(config)
    if absent:
        named = ", ".join(f"{key} ({path})" for key, path in absent.items())
        raise UserError(f"these files or folders do not exist: {named}")


def enter_run(directory: RunDirectory, workers: Workers) -> Progress:
    """Begin this worker's log in a run directory; return its progress bars."""
    directory.path.mkdir(parents=True, exist_ok=True)  # on the disk of another machine
    start_logging(is_first=workers.is_first, file=directory.log(workers.rank))
    return progress_bar(is_first=workers.is_first)


def _open(request: RunRequest, workers: Workers, stack: ExitStack) -> Tuple[str, str]:
    """Return the settings as YAML and the path of the run.

    Until the end of `stack` no other process may train into it.
    """
    config = request.config()
    if request.resume is not None:
        directory = RunDirectory(request.resume)
        refuse_other_workers(directory, workers.size)
    else:
        refuse_absent(config)
        directory = request.create(config, num_workers=workers.size)
    stack.enter_context(directory.locked())
    return dump_config(config), str(directory.path)
