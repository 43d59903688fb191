"""Real Horovod workers over Gloo, whose return values the test then looks at."""

import os
import sys
from pathlib import Path
from unittest import mock

import cloudpickle

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 400  # seconds; a busy machine is no failure
WAITING = {  # what Horovod's workers wait for each other; by themselves they give up after 30 s
    "HOROVOD_START_TIMEOUT": str(PATIENCE),
    "HOROVOD_GLOO_TIMEOUT_SECONDS": str(PATIENCE),
}


def run_workers(function, num_workers, *args):
    """Runs `function(*args)` on each of `num_workers` workers; the results by rank."""
    import horovod

    cloudpickle.register_pickle_by_value(sys.modules[function.__module__])
    path = f"{ROOT}{os.pathsep}{ROOT / 'tests'}"
    with mock.patch.dict(os.environ, OMP_NUM_THREADS="1", PYTHONPATH=path, **WAITING):
        return horovod.run(function, args=args, num_proc=num_workers, use_gloo=True)
