"""Metrics by epoch: JSON lines, and the trackers of other projects."""

from __future__ import annotations

import json
import logging
import math
import os
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Callable, Dict, Mapping, NamedTuple

from edp_mx.errors import UserError
from edp_mx.runtime.files import write_text
from edp_mx.runtime.json_text import parse_json

logger = logging.getLogger(__name__)
Row = Mapping[str, Any]  # of `metrics.jsonl`


class Opened(NamedTuple):
    """What writes the numbers of an epoch, and what ends the writing."""

    add: Callable[[int, Mapping[str, float]], Any]
    close: Callable[[], Any]


class Tracker(NamedTuple):
    """A tracker: the package that it needs, and what opens it for a run directory."""

    package: str
    open: Callable[[Path], Opened]


def _tensorboard(run: Path) -> Opened:
    """Write curves to `events/`; those that were there are written again."""
    from tensorboardX import SummaryWriter

    curves = SummaryWriter(str(run / "events"), purge_step=1)
    # It writes in a thread and at exit, with a traceback where it cannot; what cannot be
    # written is said by whoever writes `metrics.jsonl`.
    events = curves.file_writer.event_writer._ev_writer
    for name in ("write_event", "flush", "close"):
        setattr(events, name, _forgiving(getattr(events, name)))

    def add(epoch: int, numbers: Mapping[str, float]) -> None:
        for name, value in numbers.items():
            curves.add_scalar(name, value, epoch)
        curves.flush()

    return Opened(add, curves.close)


def _mlflow(run: Path) -> Opened:
    """Begin a run in `mlruns/`, or where MLFLOW_TRACKING_URI says."""
    os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")  # the one store that needs no server
    from mlflow.tracking import MlflowClient

    place = os.environ.get("MLFLOW_TRACKING_URI") or (run / "mlruns").resolve().as_uri()
    if not place.startswith("file:"):
        _warn_of(place)
    client = MlflowClient(tracking_uri=place)
    found = client.get_experiment_by_name("edp_mx")
    experiment = found.experiment_id if found else client.create_experiment("edp_mx")
    identifier = client.create_run(experiment, run_name=run.resolve().name).info.run_id

    def add(epoch: int, numbers: Mapping[str, float]) -> None:
        for name, value in numbers.items():
            client.log_metric(identifier, name, value, step=epoch)

    return Opened(add, lambda: client.set_terminated(identifier))


def _wandb(run: Path) -> Opened:
    """Begin a run in `wandb/`, offline unless WANDB_MODE says otherwise."""
    import wandb

    mode: Any = os.environ.get("WANDB_MODE", "offline")
    if mode == "online":
        _warn_of("Weights & Biases")
    settings = wandb.Settings(silent=True, console="off")
    name = run.resolve().name
    begun = wandb.init(project="edp_mx", name=name, dir=str(run), mode=mode, settings=settings)
    return Opened(lambda epoch, numbers: begun.log(dict(numbers), step=epoch), begun.finish)


TRACKERS = {
    "tensorboard": Tracker("tensorboardX", _tensorboard),
    "mlflow": Tracker("mlflow", _mlflow),
    "wandb": Tracker("wandb", _wandb),
    "none": Tracker("", lambda _: Opened(lambda *_: None, lambda: None)),
}


def refuse_absent_tracker(name: str) -> None:
    """Refuse a tracker whose package is not installed."""
    package = TRACKERS[name].package
    if package and find_spec(package) is None:
        raise UserError(
            f"training.tracking: {name} needs {package}: pip install 'edp_mx[{name}]', or set it "
            "to none"
        )


def _warn_of(place: str) -> None:
    logger.warning(
        "the numbers of each epoch go to %s, also scores on the validation part, which no ε covers",
        place,
    )


def _forgiving(write: Callable[..., Any]) -> Callable[..., None]:
    def call(*arguments: Any) -> None:
        with suppress(OSError):
            write(*arguments)

    return call


class MetricsLog:
    """Log of epochs, counted from 1, each line on disk before the next epoch begins.

    Lines from the epoch `start` on are dropped, since a resumed run writes them again, and so is a
    line that a crash tore. The same numbers go to one of `TRACKERS`, at each start of the run those
    of all its epochs; its first failure ends the tracking with a warning, and not the training.
    """

    def __init__(self, path: Path, *, start: int = 1, tracking: str = "none") -> None:
        self._path = path
        kept = []
        if path.exists():
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
            kept = [line for line in lines if _epoch_of(line) < start]
            write_text(path, "".join(f"{line}\n" for line in kept))
        self._name, self._tracker = tracking, TRACKERS["none"].open(path.parent)
        self._tracker = self._tried(lambda: TRACKERS[tracking].open(path.parent)) or self._tracker
        for line in kept:
            self._track(parse_json(line))

    def add(self, row: Dict[str, Any]) -> None:
        """Add one line; all finite numbers but the epoch are tracked."""
        row = {name: value if math.isfinite(value) else None for name, value in row.items()}
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise UserError(f"cannot write {self._path}: {error.strerror}") from error
        self._track(row)

    def close(self) -> None:
        """End the tracking, with what is still to be written."""
        self._tried(self._tracker.close)

    def _track(self, row: Row) -> None:
        numbers = {k: value for k, value in row.items() if k != "epoch" and value is not None}
        self._tried(lambda: self._tracker.add(row["epoch"], numbers))

    def _tried(self, write: Callable[[], Any]) -> Any:
        try:
            return write()
        except Exception as error:  # of another project, and perhaps of its network
            self._tracker = TRACKERS["none"].open(Path())
            logger.warning("%s ended (%s); metrics.jsonl has all numbers", self._name, error)
            return None


def _epoch_of(line: str) -> float:
    """A line's epoch; beyond all where it is torn."""
    try:
        return float(parse_json(line)["epoch"])
    except (ValueError, KeyError, TypeError, OverflowError):
        return math.inf
