"""What happened, epoch by epoch: JSON lines and TensorBoard curves."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any, Dict

from tensorboardX import SummaryWriter


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
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
            file.flush()
            os.fsync(file.fileno())
        for name, value in row.items():
            if name != "epoch" and math.isfinite(value):
                self._curves.add_scalar(name, value, row["epoch"])
        self._curves.flush()
