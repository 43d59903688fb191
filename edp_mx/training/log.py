"""Metrics by epoch: JSON lines and TensorBoard curves."""

from __future__ import annotations

import json
import math
import os
from contextlib import suppress
from pathlib import Path
from typing import Any, Callable, Dict

from tensorboardX import SummaryWriter

from edp_mx.errors import UserError
from edp_mx.runtime.files import write_text
from edp_mx.runtime.json_text import parse_json


class MetricsLog:
    """Log of epochs, counted from 1, each line on disk before the next epoch begins.

    Lines from the epoch `start` on are dropped, since a resumed run writes them again, and so is a
    line that a crash tore. `events/` beside the file is for TensorBoard.
    """

    def __init__(self, path: Path, *, start: int = 1) -> None:
        self._path = path
        if path.exists():
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
            kept = [line for line in lines if _epoch_of(line) < start]
            write_text(path, "".join(f"{line}\n" for line in kept))
        self._curves = SummaryWriter(str(path.parent / "events"), purge_step=start)
        # It writes in a thread and at exit, with a traceback where it cannot; what cannot be
        # written is said by whoever writes the line itself.
        events = self._curves.file_writer.event_writer._ev_writer
        for name in ("write_event", "flush", "close"):
            setattr(events, name, _forgiving(getattr(events, name)))

    def add(self, row: Dict[str, Any]) -> None:
        """Add one line; all finite numbers but the epoch become curves."""
        row = {name: value if math.isfinite(value) else None for name, value in row.items()}
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise UserError(f"cannot write {self._path}: {error.strerror}") from error
        for name, value in row.items():
            if name != "epoch" and value is not None:
                self._curves.add_scalar(name, value, row["epoch"])
        self._curves.flush()


def _epoch_of(line: str) -> float:
    """A line's epoch; beyond all where it is torn."""
    try:
        return float(parse_json(line)["epoch"])
    except (ValueError, KeyError, TypeError, OverflowError):
        return math.inf


def _forgiving(write: Callable[..., Any]) -> Callable[..., None]:
    def call(*arguments: Any) -> None:
        with suppress(OSError):
            write(*arguments)

    return call
