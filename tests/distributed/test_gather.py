"""Real workers gather plain values of any kind and length, and run nothing that comes in."""

import pickle

import numpy as np
import pytest
from support.workers import run_workers

from edp_mx.errors import UserError
from edp_mx.runtime import distributed

MINE = ["text", None, {"a": (1, 2.5), 3: b"\x00"}, np.arange(70_000, dtype=np.int16)]


def gather_all():
    """Runs on a worker: each worker gathers another kind of value in each turn."""
    workers = distributed.start()
    return [workers.gather(MINE[(turn + workers.rank) % len(MINE)]) for turn in range(len(MINE))]


def test_each_worker_has_the_values_of_all_by_rank():
    for found in run_workers(gather_all, 2):
        for turn, values in enumerate(found):
            for rank, value in enumerate(values):
                expected = MINE[(turn + rank) % len(MINE)]
                assert type(value) is type(expected)
                np.testing.assert_equal(value, expected)


class Trap:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


def gather_from_a_stranger(path):
    """Runs on a worker: the second sends a pickle that writes a file when it is read."""
    workers = distributed.start()
    if workers.rank == 1:
        message = np.frombuffer(pickle.dumps(Trap(path)), np.uint8)
        distributed._gathered(np.array([len(message)], np.int32), "edp_mx.size")
        distributed._gathered(message, "edp_mx.value")
        return ""
    with pytest.raises(ValueError) as refused:
        workers.gather("a value")
    return str(refused.value)


def test_a_pickle_that_comes_in_is_not_read(tmp_path):
    assert "not a message of a worker" in run_workers(
        gather_from_a_stranger, 2, str(tmp_path / "written")
    )[0]  # fmt: skip
    assert not (tmp_path / "written").exists()
    pickle.loads(pickle.dumps(Trap(str(tmp_path / "written")))).close()  # the trap is one
    assert (tmp_path / "written").exists()


def disagree():
    """Runs on a worker: they differ, and each is told so."""
    workers = distributed.start()
    with pytest.raises(UserError) as refused:
        workers.agree("the length", 5 + workers.rank)
    return str(refused.value)


def test_workers_that_differ_are_named():
    expected = "the workers disagree on the length: worker 0: 5; worker 1: 6"
    assert run_workers(disagree, 2) == [expected] * 2
