"""Real Horovod workers over Gloo, whose return values the test then looks at."""

import os
import sys
from pathlib import Path

import cloudpickle
from jobs import Job, serve

from edp_mx.runtime.processes import launcher

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 400  # seconds; a busy machine is no failure
WAITING = {  # what Horovod's workers wait for each other; by themselves they give up after 30 s
    "HOROVOD_GLOO_TIMEOUT_SECONDS": str(PATIENCE),
}
_started = {}  # the job by its number of workers; one at a time


def run_workers(function, num_workers, *args, is_fresh=False):
    """Runs `function(*args)` on each of `num_workers` workers; the results by rank.

    One worker is this process; several are started once for each number of them, unless they are
    to be fresh.
    """
    if num_workers == 1:
        return [function(*args)]
    if is_fresh or num_workers not in _started:
        end_workers()
        _started[num_workers] = _start(num_workers)
    cloudpickle.register_pickle_by_value(sys.modules[function.__module__])
    # As bytes: by itself a connection would share MXNet's arrays instead of sending them.
    job = _started.pop(num_workers)  # which has ended if this fails
    answers = map(cloudpickle.loads, job.turn(cloudpickle.dumps((function, args))))
    _started[num_workers] = job
    return [value for _, value in sorted(answers, key=lambda answer: answer[0])]


def end_workers():
    """Ends those that wait for more to do."""
    while _started:
        _started.popitem()[1].close()


def _start(num_workers):
    path = os.pathsep.join(map(str, (ROOT, ROOT / "tests", ROOT / "benchmarks")))
    return Job(
        [*launcher(num_workers), sys.executable, __file__],
        size=num_workers,
        environment={"OMP_NUM_THREADS": "1", "PYTHONPATH": path, **WAITING},
    )


def _work(order):
    function, args = cloudpickle.loads(order)
    return cloudpickle.dumps((int(os.environ["HOROVOD_RANK"]), function(*args)))


if __name__ == "__main__":
    serve(sys.argv[1], _work)
