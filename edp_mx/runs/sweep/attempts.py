"""The attempts of a sweep at its trials, by the names of their run directories."""

from __future__ import annotations

from pathlib import Path
from typing import List

from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.files import write_text


class Attempts:
    """The names in `attempts.txt`, so that a run which is removed later still counts in ε."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "attempts.txt"

    def names(self) -> List[str]:
        """Return each name once, the oldest first."""
        if not self._path.exists():
            return []
        return list(dict.fromkeys(self._path.read_text("utf-8").split()))

    def note(self, run: RunDirectory) -> None:
        """Note an attempt, before it begins."""
        self._write([*self.names(), run.path.name])

    def forget(self, run: RunDirectory) -> None:
        """Forget an attempt that has ended before it had begun."""
        self._write([name for name in self.names() if name != run.path.name])

    def _write(self, names: List[str]) -> None:
        write_text(self._path, "".join(f"{name}\n" for name in names))
