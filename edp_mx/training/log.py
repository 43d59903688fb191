"""What happened, epoch by epoch: JSON lines and TensorBoard curves."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any, Dict

from tensorboardX import SummaryWriter

from edp_mx.errors import UserError


class MetricsLog:
    """Appends one line an epoch to `metrics.jsonl`, on disk before the next epoch begins.

    Args:
        path: the file; its folder gets `events/` beside it for TensorBoard.

    Edge cases: a crash can only tear the last line.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._curves = SummaryWriter(str(path.parent / "events"))

    def add(self, row: Dict[str, Any]) -> None:
        """Adds one epoch: `row["epoch"]` counts, all other finite numbers become curves."""
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
