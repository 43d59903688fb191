"""What happened, epoch by epoch: JSON lines and TensorBoard curves."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Dict, Optional

from tensorboardX import SummaryWriter


class MetricsLog:
    """Appends one line an epoch to `metrics.jsonl`, on disk before the next epoch begins.

    Args:
        path: the file; its folder gets `events/` beside it for TensorBoard. None logs nothing (all
            workers but the first).

    Edge cases: a crash can only tear the last line.
    """

    def __init__(self, path: Optional[Path]) -> None:
        self._file = path and path.open("a", encoding="utf-8")
        self._curves = path and SummaryWriter(str(path.parent / "events"))

    def add(self, row: Dict[str, Any]) -> None:
        """Adds one epoch: `row["epoch"]` counts, all other numbers become curves."""
        if self._file is None or self._curves is None:
            return
        self._file.write(json.dumps(row, allow_nan=True) + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        for name, value in row.items():
            if name != "epoch" and isinstance(value, (int, float)):
                self._curves.add_scalar(name, value, row["epoch"])
        self._curves.flush()

    def __enter__(self) -> MetricsLog:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None and self._curves is not None:
            self._file.close()
            self._curves.close()
