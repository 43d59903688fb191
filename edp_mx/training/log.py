"""Metrics by epoch: JSON lines, and a tracker's."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any, Dict

from edp_mx.errors import UserError
from edp_mx.runtime.files import write_text
from edp_mx.runtime.json_text import parse_json
from edp_mx.training.tracking import Tracking


class MetricsLog:
    """Log of epochs, counted from 1, each line on disk before the next epoch begins.

    Lines from the epoch `start` on are dropped, since a resumed run writes them again, and so is a
    line that a crash tore. The same numbers go to a tracker of `tracking.TRACKERS`.
    """

    def __init__(self, path: Path, *, start: int = 1, tracking: str = "none") -> None:
        self._path = path
        kept = []
        if path.exists():
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
            kept = [line for line in lines if _epoch_of(line) < start]
            write_text(path, "".join(f"{line}\n" for line in kept))
        self._tracking = Tracking(tracking, path.parent, [parse_json(line) for line in kept])

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
        self._tracking.add(row)

    def close(self) -> None:
        """End the tracking."""
        self._tracking.close()


def _epoch_of(line: str) -> float:
    """A line's epoch; beyond all where it is torn."""
    try:
        return float(parse_json(line)["epoch"])
    except (ValueError, KeyError, TypeError, OverflowError):
        return math.inf
