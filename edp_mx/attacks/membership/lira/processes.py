"""Training of the shadow models of LiRA in parallel processes, and their scores."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Dict, Iterator, Sequence, Set

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
    """Train shadows in `jobs` processes with one thread each, and yield each that is finished.

    They end with this process. If one fails, all others are ended and its last line is the error.
    """
    training: Dict[Path, subprocess.Popen] = {}  # by the log
    shares: Dict[Path, Sequence[int]] = {}
    missing = list(numbers)
    try:
        for share in [numbers[job::jobs] for job in range(min(jobs, len(numbers)))]:
            log = shadow_file(folder, share[0]).with_suffix(".log")
            log.unlink(missing_ok=True)  # of an earlier failure
            words = [sys.executable, "-m", SHADOW, str(folder.absolute()), *map(str, share)]
            training[log], shares[log] = start(words, log, threads=1), share
        while training:
            time.sleep(PAUSE)
            ended = [log for log, process in training.items() if process.poll() is not None]
            for number in [k for k in missing if shadow_file(folder, k).exists()]:
                missing.remove(number)
                yield number
            for log in ended:
                _check_ended(log, training.pop(log).returncode, {*shares[log]} & {*missing})
    finally:
        end([*training.values()])


def _check_ended(log: Path, code: int, missing: Set[int]) -> None:
    """Refuse a process that has ended without some of its shadows."""
    if code or missing:
        raise UserError(
            f"shadow {min(missing, default='')} ended with code {code}: {last_sentence(log)} (see "
            f"{log}); finished shadows are kept"
        )
    log.unlink()
