"""Keep a record of each step that is about to be released, in any process that starts Python here.

faults.py and faults_places.py put this folder first in PYTHONPATH: trainings are started by a
launcher or a sweep, not by a program of ours. A line is `epoch step`, in
`$EDP_MX_FAULTS_RECORD/<name of the run>.<rank>`; the record says what the ledger must hold.
"""

import importlib.abc
import importlib.util
import os
import sys
from pathlib import Path

LOOP = "edp_mx.training.loop"


def _record_of_this_run():  # type: ignore[no-untyped-def]
    words, rank = sys.argv, os.environ.get("HOROVOD_RANK", "0")
    place = words[words.index("--resume" if "--resume" in words else "--run") + 1]
    return Path(os.environ["EDP_MX_FAULTS_RECORD"], f"{Path(place).name}.{rank}")


def _recording(loop):  # type: ignore[no-untyped-def]
    step_of, path = loop._step, _record_of_this_run()

    def step(self, losses, rate, batches, epoch, number):  # type: ignore[no-untyped-def]
        with open(path, "a") as record:
            record.write(f"{epoch} {number}\n")
        return step_of(self, losses, rate, batches, epoch, number)

    loop._step = step


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the training loop as usual, and changes it once it is loaded."""

    def find_spec(self, name, *_):  # type: ignore[no-untyped-def]
        if name != LOOP:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        load = spec.loader.exec_module

        def exec_module(module):  # type: ignore[no-untyped-def]
            load(module)
            if {"--run", "--resume"} & {*sys.argv}:  # a training, not the sweep itself
                _recording(module.TrainingLoop)

        spec.loader.exec_module = exec_module
        return spec


if "EDP_MX_FAULTS_RECORD" in os.environ:
    sys.meta_path.insert(0, _Finder())
