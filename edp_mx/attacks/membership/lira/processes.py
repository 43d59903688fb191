"""Training of the shadow models of LiRA in parallel processes, and their scores."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Dict, Iterator, Sequence

import numpy as np

from edp_mx.attacks.membership.lira.plan import ShadowPlan
from edp_mx.attacks.membership.scores import hash_of
from edp_mx.errors import UserError
from edp_mx.runs.sweep.processes import PAUSE, end, start
from edp_mx.runs.sweep.trial import last_sentence
from edp_mx.runtime.npz import read_arrays

SHADOW = "edp_mx.attacks.membership.lira.shadow"  # module that one process runs


def shadow_file(folder: Path, number: int) -> Path:
    return folder / f"shadow-{number:03d}.npz"


def read_shadow(folder: Path, number: int, plan: ShadowPlan) -> Any:
    """Return loss and log-odds of a finished shadow, None if it is not finished."""
    path = shadow_file(folder, number)
    if not path.exists():
        return None
    arrays = read_arrays(path, "a shadow", advice="remove it to train the shadow again")
    is_in = plan.is_in[:, number]
    own = hash_of(folder / "plan.npz")
    if str(arrays.get("plan")) != own or not np.array_equal(arrays["is_in"], is_in):
        raise UserError(f"{path} is of another plan: remove it to train the shadow again")
    return arrays


def train_shadows(folder: Path, numbers: Sequence[int], jobs: int) -> Iterator[int]:
    """Train shadows, `jobs` at a time with one thread each, and yield each that has ended.

    They end with this process. If one fails, all others are ended and its last line is the error.
    """
    waiting = list(numbers)
    training: Dict[int, subprocess.Popen] = {}
    try:
        while waiting or training:
            while waiting and len(training) < jobs:
                number = waiting.pop(0)
                words = [sys.executable, "-m", SHADOW, str(folder.absolute()), str(number)]
                _log_of(folder, number).unlink(missing_ok=True)  # of an earlier failure
                training[number] = start(words, _log_of(folder, number), threads=1)
            time.sleep(PAUSE)
            for number in [k for k, process in training.items() if process.poll() is not None]:
                _check_ended(folder, number, training.pop(number).returncode)
                yield number
    finally:
        end([*training.values()])


def _log_of(folder: Path, number: int) -> Path:
    return shadow_file(folder, number).with_suffix(".log")


def _check_ended(folder: Path, number: int, code: int) -> None:
    log = _log_of(folder, number)
    if code or not shadow_file(folder, number).exists():
        raise UserError(
            f"shadow {number} ended with code {code}: {last_sentence(log)} (see {log}); finished "
            "shadows are kept"
        )
    log.unlink()
