"""A run directory: everything that a run was made from and all that it produced."""

from __future__ import annotations

import fcntl
import os
import platform
import sys
import time
from contextlib import contextmanager, suppress
from functools import cached_property
from importlib import import_module
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, Optional, Type, TypeVar

from edp_mx.dp.accounting.ledger import LEDGER
from edp_mx.dp.checkpoint_file import remove_checkpoints
from edp_mx.errors import UserError
from edp_mx.runs.file_types import KINDS_OF_FILES, Environment, Results, Scores, check_epoch
from edp_mx.runtime.files import lock_folder, read_bytes, remove_leftovers, write_json, write_text
from edp_mx.runtime.json_text import NotJSON, parse_json, read_json
from edp_mx.runtime.structured import AsRead, structure_file, unstructure
from edp_mx.runtime.yaml_tree import read_mapping

if TYPE_CHECKING:
    from edp_mx.runs.written_settings import WrittenSettings
    from edp_mx.tasks.task import Task

MODEL = "model"  # the folder of a model in Hugging Face's layout
_README = Path(__file__).with_name("readme.md")  # a template
Kind = TypeVar("Kind", bound=AsRead)


class RunDirectory:
    """The files of a run.

    While it lasts, `checkpoint` has its state, and `workers` a sign of life of each worker.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config, self.metrics = path / "config.yaml", path / "metrics.jsonl"
        self.weights, self.checkpoint = path / "weights.npz", path / "checkpoint.npz"
        self.ledger, self.workers = path / LEDGER, path / ".workers"

    @classmethod
    def choose(cls, name: str, parent: Path) -> RunDirectory:
        """Make a new folder below `parent`, named after the run and the time, and return it."""
        stamp = time.strftime("%Y%m%d-%H%M%S")
        for suffix in ["", *(f"-{i}" for i in range(2, 1000))]:
            path = parent / f"{name}-{stamp}{suffix}"
            with suppress(FileExistsError):  # another process may take it at the same moment
                path.mkdir(mode=0o700, parents=True)
                return cls(path)
        raise UserError(f"{parent} holds a thousand runs of this second; name a folder with --run")

    @classmethod
    def existing(cls, path: Path) -> RunDirectory:
        """Return a run that was trained before."""
        run = cls(path if path.name else path.absolute())  # "." has no name
        if not run.config.is_file():
            raise UserError(
                f"{path} is not a run directory (it has no config.yaml); give the folder "
                "that `edp-mx train` printed, e.g. runs/atis_clc-20260101-120000"
            )
        return run

    @classmethod
    def unfinished(cls, path: Path) -> RunDirectory:
        """Return a run that was interrupted."""
        run = cls.existing(path)
        if run.has("results"):
            raise UserError(f"{path} has ended already; train anew from its config.yaml")
        return run

    @classmethod
    def trained(cls, path: Path) -> RunDirectory:
        """Return a run with a model to use; refuse one without, with the reason."""
        run = cls.existing(path)
        lost = [each.name for each in (run.weights, path / "vocabulary.json") if not each.exists()]
        if run.has("results") and lost:
            raise UserError(f"{path} has lost {' and '.join(lost)}: restore it, or train anew")
        if not run.has("vocabulary"):
            raise UserError(
                f"{path} never began to train, and has no model; {run.log(0).name} may say why. "
                f"Train anew, from {run.config} or with `{run.resume_command()}`"
            )
        if not run.weights.exists():
            raise UserError(
                f"{path} has not trained to its end, and has no model yet; if it was interrupted, "
                f"go on with `{run.resume_command()}`"
            )
        return run

    def resume_command(self, num_workers: Optional[int] = None) -> str:
        """Return the command that resumes the run, with as many workers as it has had."""
        if num_workers is None:
            num_workers = self.num_workers()
        path = quote(str(self.path))
        if num_workers == 1:
            return f"edp-mx train --resume {path}"
        given = (f"{n}={os.environ[n]} " for n in ("HOSTS", "NIC") if os.environ.get(n))
        return f"NP={num_workers} {''.join(given)}launch/train.sh --resume {path}"

    def num_workers(self) -> int:
        """Return with how many workers it was begun; 1 if it was not yet."""
        if not self.has("environment"):
            return 1
        count = self.load(Environment).num_workers
        if count is None:
            raise UserError(
                f"{self.path}/environment.json lacks num_workers; it was cut or changed"
            )
        return count

    def fingerprints(self) -> Mapping[str, Mapping[str, str]]:
        """Return the keyed fingerprints of its parts; none where nobody wrote them down."""
        return self.load(Environment).fingerprints if self.has("environment") else {}

    def create(self, name: str, config: str, *, readme: str = "", resume: str = "") -> None:
        """Create the folder, which must be empty, with its configuration and README.

        The `readme` is a template with {name}, {path} and {resume}, the command that resumes it.
        """
        is_file = self.path.exists() and not self.path.is_dir()
        if is_file or (self.path.exists() and any(self.path.iterdir())):
            found = "is a file" if is_file else "is not empty"
            raise UserError(f"{self.path} {found}; choose another --run (nothing was changed)")
        self.path.mkdir(parents=True, exist_ok=True)
        self.path.chmod(0o700)  # most files below are not private
        readme = readme or _README.read_text(encoding="utf-8")
        facts = {"name": name, "path": self.path, "resume": resume or self.resume_command(1)}
        write_text(self.path / "README.md", readme.format(**facts))
        write_text(self.config, config)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep the folder to this process; refuse it where another trains into it.

        Edge cases: nothing is kept on a file system without locks.
        """
        handle = lock_folder(self.path)
        if handle is None:
            yield
            return
        try:
            with suppress(OSError):
                remove_leftovers(self.path)
            yield
        finally:
            os.close(handle)

    def is_in_use(self) -> bool:
        """Return whether a process trains into the folder now."""
        handle = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:  # a file system without locks
            return self.workers.exists()
        finally:
            os.close(handle)
        return False

    def settings(self) -> Dict[str, Any]:
        """Read `config.yaml`, which a run of any version has, without checking it."""
        return read_mapping(self.config)[0]

    def written(self) -> WrittenSettings:
        """Read the settings of `config.yaml` that are needed of a run of any version."""
        from edp_mx.runs.written_settings import WrittenSettings

        return structure_file(self.settings(), WrittenSettings, self.config)

    def num_epochs(self) -> int:
        """Return for how many epochs the run trains."""
        epochs = self.written().training.epochs
        if epochs is None:
            raise UserError(f"{self.config} lacks training.epochs; it was cut or changed")
        return epochs

    @cached_property
    def task(self) -> Task:
        """The task in `config.yaml`."""
        from edp_mx.tasks.registry import task_of  # here, since an account of ε needs no scores

        return task_of(self.existing(self.path).written().source)

    def has(self, name: str) -> bool:
        """Return whether `<name>.json` exists."""
        return (self.path / f"{name}.json").exists()

    def log(self, rank: int) -> Path:
        return self.path / f"rank_{rank}.log"

    def write(self, name: str, value: Any) -> None:
        """Write `<name>.json`."""
        write_json(self.path / f"{name}.json", unstructure(value))

    def finish(self, results: Any) -> None:
        """Write the results and remove the checkpoints: the run has ended well."""
        self.write("results", results)
        remove_checkpoints(self.checkpoint)

    def read(self, name: str) -> Any:
        """Read `<name>.json`, and check the fields that are used."""
        path = self.path / f"{name}.json"
        value = read_json(path)
        if name in KINDS_OF_FILES:
            structure_file(value, KINDS_OF_FILES[name], path)
        return value

    def load(self, kind: Type[Kind]) -> Kind:
        """Read the file that a kind of `KINDS_OF_FILES` is of."""
        (name,) = (name for name, each in KINDS_OF_FILES.items() if each is kind)
        path = self.path / f"{name}.json"
        return structure_file(read_json(path), kind, path)

    def scores(self) -> Scores:
        """Return the scores on the test part, as shares of 1."""
        if not self.has("results"):
            raise UserError(
                f"{self.path} has no results.json: it has not trained to its end; if it was "
                f"interrupted, go on with `{self.resume_command()}`"
            )
        return self.results().test

    def results(self) -> Results:
        """Return `results.json`, whose scores and baseline are those of the task."""
        results, task = self.load(Results), self.task
        given = (("test", results.test, ()), ("baseline", results.baseline, task.answer_keys))
        for name, scores, answer in given:  # a baseline is not in the runs of older versions
            if scores is not None and (key := task.lacking(scores, *answer)):
                place = self.path / "results.json"
                raise UserError(f"{place}: {name} lacks its {key}; it was cut or changed")
        return results

    def epochs(self) -> List[Dict[str, Any]]:
        """Return the lines of `metrics.jsonl`, if there are any; a torn last line is left out."""
        if not self.metrics.exists():
            return []
        lines = read_bytes(self.metrics).splitlines()
        rows: List[Dict[str, Any]] = []
        metrics = self.task.metrics if self.config.exists() else ()  # ε is counted without
        for number, line in enumerate(lines, start=1):
            try:
                place = f"{self.metrics}, line {number}"
                rows.append(check_epoch(parse_json(line), place, metrics))
            except NotJSON as error:
                if number < len(lines):
                    raise UserError(f"{place}: not JSON ({error})") from error
        return rows


def environment(num_workers: int) -> Dict[str, Any]:
    """Return the environment of a run: of paths only the names, no user and no host."""
    from edp_mx.runtime.blas_in_use import kernels_in_use  # loads MXNet

    packages = ("mxnet", "gluonnlp", "horovod", "numpy", "scipy", "sklearn")
    return {
        "command": [Path(part).name if os.sep in part else part for part in sys.argv],
        "num_workers": num_workers,
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "omp_num_threads": os.environ.get("OMP_NUM_THREADS"),
        "packages": {name: import_module(name).__version__ for name in packages},
        "blas": kernels_in_use(),
    }
