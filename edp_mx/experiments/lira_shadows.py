"""The shadow models of LiRA: who trains on whom, and their training side by side."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any, Dict, Iterator, List, Sequence, Tuple

import numpy as np

from edp_mx.attacks.lira import draw_halves
from edp_mx.attacks.scores import MembershipScores, hash_of, read_arrays, write_arrays
from edp_mx.config import ExperimentConfig, dump_config
from edp_mx.errors import UserError
from edp_mx.files import write_text

PAUSE = 0.2  # seconds between two looks at the shadows that train


def shadow_file(folder: Path, number: int) -> Path:
    """Where a shadow's scores are."""
    return folder / f"shadow-{number:03d}.npz"


def read_shadow(folder: Path, number: int, is_in: np.ndarray) -> Any:
    """Loss and log-odds of a finished shadow; None where there is none.

    Raises:
        UserError: the file is torn or of another plan.
    """
    path = shadow_file(folder, number)
    if not path.exists():
        return None
    arrays = read_arrays(path, "remove it, and it is trained again")
    plan = hash_of(folder / "plan.npz")
    if str(arrays.get("plan")) != plan or not np.array_equal(arrays["is_in"], is_in[:, number]):
        raise UserError(f"{path} is of another plan: remove it, and it is trained again")
    return arrays


def read_plan(folder: Path) -> Tuple[List[str], np.ndarray, Dict[str, Any]]:
    """Ids of the utterances, which shadow trains on which (U, K), and where they come from."""
    arrays = read_arrays(folder / "plan.npz", "run `edp-mx attack RUN --lira K`")
    return arrays["ids"].tolist(), arrays["is_in"], json.loads(str(arrays["about"]))


def settle_plan(
    folder: Path, scores: MembershipScores, config: ExperimentConfig, shadows: int
) -> np.ndarray:
    """Writes the plan, or finds that it is the same as before; who is in which shadow, (U, K)."""
    ids = [scores.ids[i] for i in np.flatnonzero(scores.is_judged)]
    is_in = draw_halves(len(ids), shadows, seed=scores.origin.seed)
    about: Dict[str, Any] = {
        "origin": asdict(scores.origin),
        "shadows": shadows,
        "config": dump_config(config),
    }
    if (folder / "plan.npz").exists():
        old_ids, old_is_in, old_about = read_plan(folder)
        if (old_ids, old_about) != (ids, about) or not np.array_equal(is_in, old_is_in):
            raise UserError(
                f"{folder} holds shadows of other settings (or of another number of them): repeat "
                "those, or remove the folder"
            )
        return is_in
    write_text(folder / "config.yaml", about["config"])
    arrays = {"ids": np.array(ids), "is_in": is_in, "about": np.array(json.dumps(about))}
    write_arrays(folder / "plan.npz", arrays)
    return is_in


def train_shadows(folder: Path, numbers: Sequence[int], jobs: int) -> Iterator[int]:
    """Trains shadows, `jobs` at a time with one thread each; yields each that has ended.

    Raises:
        UserError: one failed; says its last words. Those that still train are ended.
    """
    waiting = list(numbers)
    training: Dict[int, subprocess.Popen] = {}
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    try:
        while waiting or training:
            while waiting and len(training) < jobs:
                number = waiting.pop(0)
                with open(folder / f"shadow-{number:03d}.log", "wb") as log:
                    training[number] = subprocess.Popen(
                        [sys.executable, "-m", "edp_mx.experiments.lira_shadow", folder.absolute(),
                         str(number)],
                        env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                    )  # fmt: skip
            time.sleep(PAUSE)
            for number in [k for k, process in training.items() if process.poll() is not None]:
                _check_ended(folder, number, training.pop(number).returncode)
                yield number
    finally:
        for process in training.values():
            process.terminate()
        for process in training.values():
            process.wait()


def _check_ended(folder: Path, number: int, code: int) -> None:
    log = folder / f"shadow-{number:03d}.log"
    if code or not shadow_file(folder, number).exists():
        lines = log.read_text("utf-8", errors="replace").strip().splitlines()
        raise UserError(
            f"shadow {number} ended with code {code}: {lines[-1] if lines else 'it said nothing'} "
            f"(see {log}); the shadows that have ended are kept"
        )
    log.unlink()
