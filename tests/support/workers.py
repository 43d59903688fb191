"""Real Horovod workers over Gloo, whose return values the test then looks at."""

import os
import sys
from pathlib import Path
from unittest import mock

import cloudpickle

ROOT = Path(__file__).resolve().parents[2]


def run_workers(function, num_workers, *args):
    """Runs `function(*args)` on each of `num_workers` workers; the results by rank."""
    import horovod

    cloudpickle.register_pickle_by_value(sys.modules[function.__module__])
    with mock.patch.dict(
        os.environ, OMP_NUM_THREADS="1", PYTHONPATH=f"{ROOT}{os.pathsep}{ROOT / 'tests'}"
    ):
        return horovod.run(function, args=args, num_proc=num_workers, use_gloo=True)
