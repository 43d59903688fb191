"""A run directory: everything that a run was made from and all that it produced."""

from __future__ import annotations

import fcntl
import os
import platform
import sys
import time
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional

from edp_mx.dp.checkpoint_file import remove_checkpoints
from edp_mx.errors import UserError
from edp_mx.runs.shapes import check_epoch, check_file, check_settings
from edp_mx.runtime.files import remove_leftovers, write_json, write_text
from edp_mx.runtime.json_text import NotJSON, parse_json, read_json
from edp_mx.runtime.yaml_tree import read_mapping

if TYPE_CHECKING:
    from edp_mx.tasks.task import Task

MODEL = "model"  # the folder of a model in Hugging Face's layout
README = """# {name}

One training run of edp_mx. Read `results.json` for how good the model is and `privacy.json` for
what it leaks; `edp-mx compare` sets runs side by side. "NOT private" means that ε does not cover a
file: it holds private text or reveals training data. Only you can read this folder.

| file | what it holds |
| --- | --- |
| `config.yaml` | every setting, written out; train again with `launch/train.sh config.yaml` |
| `environment.json` | command, workers, versions of the packages, machine, kernels of the \
products, keyed hashes of the parts |
| `origin.json` | what was read for the model, and for those that it starts from, as keyed hashes |
| `split.json` | ids of the utterances in the three parts. NOT private |
| `vocabulary.json` | words, characters, slots, intents, and whether they are public |
| `layers.json` | the layers k of Algorithm 1: their parameters and scales α_k |
| `metrics.jsonl` | one line per epoch: loss, validation scores, ε so far, clipping. NOT private |
| `events/` | the same as TensorBoard curves: `tensorboard --logdir events` |
| `curves.png`, `curves.csv` | the same to look at |
| `report.html` | one page: scores, ε and what it does not cover, curves, settings, commands. NOT \
private |
| `weights.npz` | the parameters, by name |
| `privacy_ledger.jsonl` | the plan and every release, each line written before its \
release; `edp-mx explain` reads it |
| `checkpoint.npz`, `checkpoint-1.npz` | while the run lasts: where it stands, and where it stood \
before; `{resume}` resumes it. NOT private (it contains the best epoch by private scores) |
| `privacy.json` | the guarantee: ε as published, ε that holds, and what neither covers |
| `record.json` | what `edp-mx runs keep` copies: settings, scores, both ε, epochs, time; no text \
and no paths. Scores, epochs and times are NOT private |
| `results.json` | scores on the test part, and as `baseline` those of the best constant answer; \
written last: without it the run did not finish. Its times are NOT private under Poisson sampling: \
they reveal how much was drawn |
| `model/` | after `task: masked_lm`: the BERT in Hugging Face's layout, for `model.checkpoint` |
| `rank_<i>.log` | each worker's log: losses, scores, times. NOT private |
| `scores.npz` | once attacked: the model's outputs for members and others. NOT private |
| `attack-<name>/` | each attack's `report.html`, numbers and pictures. NOT private |

`edp-mx evaluate {path}` scores it again, `edp-mx predict {path} "an utterance"` uses it.
"""


class RunDirectory:
    """The files of a run.

    While it lasts, `checkpoint` says where it stands, and `workers` has a sign of life of each.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config, self.metrics = path / "config.yaml", path / "metrics.jsonl"
        self.weights, self.checkpoint = path / "weights.npz", path / "checkpoint.npz"
        self.ledger, self.workers = path / "privacy_ledger.jsonl", path / ".workers"

    @classmethod
    def choose(cls, name: str, parent: Path) -> RunDirectory:
        """Return a new folder below `parent`, named after the run and the time."""
        if Path(name).name != name or "\0" in name or len(name.encode("utf-8")) > 200:
            raise UserError(
                f"name is {name!r}; it begins the name of a folder, so that it must be short and "
                "have no /"
            )
        stamp = time.strftime("%Y%m%d-%H%M%S")
        for suffix in ["", *(f"-{i}" for i in range(2, 1000))]:
            path = parent / f"{name}-{stamp}{suffix}"
            if not path.exists():
                return cls(path)
        raise UserError(f"{parent} holds a thousand runs of this second; name a folder with --run")

    @classmethod
    def existing(cls, path: Path) -> RunDirectory:
        """Return a run that was trained before."""
        run = cls(path)
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
        """Return a run with a model to use; say what is the matter with one that has none."""
        run = cls.existing(path)
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
        """Return the command that resumes the run, with as many workers as it has had.

        Args:
            num_workers: those of the run, as far as the caller knows.
        """
        if num_workers is None:
            num_workers = self.num_workers()
        if num_workers == 1:
            return f"edp-mx train --resume {self.path}"
        given = (f"{n}={os.environ[n]} " for n in ("HOSTS", "NIC") if os.environ.get(n))
        return f"NP={num_workers} {''.join(given)}launch/train.sh --resume {self.path}"

    def num_workers(self) -> int:
        """Return with how many workers it was begun; 1 if it was not yet."""
        return self.read("environment")["num_workers"] if self.has("environment") else 1

    def create(self, name: str, config: str, *, readme: str = README, resume: str = "") -> None:
        """Create the folder, which must be empty, with its configuration and README.

        The `readme` is a template with {name}, {path} and {resume}, the command that resumes it.
        """
        is_file = self.path.exists() and not self.path.is_dir()
        if is_file or (self.path.exists() and any(self.path.iterdir())):
            found = "is a file" if is_file else "is not empty"
            raise UserError(f"{self.path} {found}; choose another --run, nothing was changed")
        self.path.mkdir(parents=True, exist_ok=True)
        self.path.chmod(0o700)  # most files below are not private
        resume = resume or self.resume_command(1)
        write_text(self.path / "README.md", readme.format(name=name, path=self.path, resume=resume))
        write_text(self.config, config)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep the folder to this process, so that no other trains into it at the same time.

        Raises:
            UserError: another process has it.

        Edge cases: nothing is kept on a file system without locks.
        """
        handle = os.open(self.path, os.O_RDONLY)
        try:
            with suppress(OSError):
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise UserError(
                        f"{self.path} is in use: another process trains into it; wait until it has "
                        "ended"
                    ) from None
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
        """Read `config.yaml` as it stands, which a run of any version has."""
        return check_settings(read_mapping(self.config)[0], self.config)

    @property
    def task(self) -> Task:
        """What is learned, as `config.yaml` says; the default where there is none."""
        from edp_mx.tasks.registry import task_of  # here, since an account of ε needs no scores

        return task_of(self.settings() if self.config.exists() else {})

    def has(self, name: str) -> bool:
        """Return whether `<name>.json` exists."""
        return (self.path / f"{name}.json").exists()

    def log(self, rank: int) -> Path:
        """Return the log file of worker `rank`."""
        return self.path / f"rank_{rank}.log"

    def write(self, name: str, value: Any) -> None:
        """Write `<name>.json`."""
        write_json(self.path / f"{name}.json", value)

    def finish(self, results: Any) -> None:
        """Write the results and remove the checkpoints: the run has ended well."""
        self.write("results", results)
        remove_checkpoints(self.checkpoint)

    def read(self, name: str) -> Any:
        """Read `<name>.json`."""
        path = self.path / f"{name}.json"
        return check_file(name, read_json(path), path)

    def epochs(self) -> List[Dict[str, Any]]:
        """Return the lines of `metrics.jsonl`, if there are any; a torn last line is left out."""
        if not self.metrics.exists():
            return []
        try:
            lines = self.metrics.read_bytes().splitlines()
        except OSError as error:
            raise UserError(f"cannot read {self.metrics}: {error.strerror}") from error
        rows: List[Dict[str, Any]] = []
        task = self.task
        for number, line in enumerate(lines, start=1):
            try:
                place = f"{self.metrics}, line {number}"
                rows.append(check_epoch(parse_json(line), place, task))
            except NotJSON as error:
                if number < len(lines):
                    raise UserError(f"{place}: not JSON ({error})") from error
        return rows


def environment(num_workers: int) -> Dict[str, Any]:
    """Return what a run was made with: of paths only the names, no user and no host."""
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
