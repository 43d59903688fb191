"""Where a training run stands, on disk and back."""

from __future__ import annotations

import math

import numpy as np
import pytest
from mxnet.gluon import nn

from edp_mx.accounting.ledger import LedgerMark
from edp_mx.errors import UserError
from edp_mx.training.config import TrainingConfig
from edp_mx.training.selection import Selection
from edp_mx.training.state import TrainingState, read_ledger_mark, read_state, write_state

ARRAYS = {"a/b": np.arange(6, dtype=np.float32).reshape(2, 3), "n": np.array(4)}


def state(**changes):
    values = {"epochs": 3, "seconds": 1.5, "best_ser": math.inf, "best_epoch": 0,
              "weights": ARRAYS, "optimizer": {}, "best": {}}  # fmt: skip
    return TrainingState(**{**values, **changes})


@pytest.mark.parametrize("best", [{}, ARRAYS])
def test_what_was_written_is_read(tmp_path, best):
    state(best=best, optimizer=ARRAYS, best_ser=0.25).write(tmp_path / "s.npz")
    found = TrainingState.read(tmp_path / "s.npz")
    assert (found.epochs, found.seconds, found.best_ser, found.best_epoch) == (3, 1.5, 0.25, 0)
    for group, expected in (("weights", ARRAYS), ("optimizer", ARRAYS), ("best", best)):
        assert set(getattr(found, group)) == set(expected)
        for name, array in expected.items():
            np.testing.assert_array_equal(getattr(found, group)[name], array)


def test_torn_missing_or_foreign_files_are_refused(tmp_path):
    state().write(tmp_path / "s.npz")
    whole = (tmp_path / "s.npz").read_bytes()
    for size in (0, 10, len(whole) // 2):
        (tmp_path / "s.npz").write_bytes(whole[:size])
        with pytest.raises(UserError, match="torn or no checkpoint"):
            TrainingState.read(tmp_path / "s.npz")
    with pytest.raises(UserError, match="is missing"):
        read_state(tmp_path / "absent.npz")
    write_state(tmp_path / "other.npz", {"step": 3}, {"weights": ARRAYS})
    with pytest.raises(UserError, match="no checkpoint of a training run"):
        TrainingState.read(tmp_path / "other.npz")


def test_a_file_that_would_execute_is_refused(tmp_path):
    np.savez(tmp_path / "s.npz", **{"weights/a": np.array([print], dtype=object)})
    with pytest.raises(UserError, match="torn or no checkpoint"):
        TrainingState.read(tmp_path / "s.npz")


def test_a_selection_goes_on_where_it_stood():
    """Interrupted after each epoch: the same end as without."""
    sers = [0.5, 0.2, 0.3, 0.4, 0.1]
    config = TrainingConfig(checkpoint="best_on_validation", early_stop_patience=2)

    def run(interrupted):
        net = nn.Dense(1, in_units=1, prefix="net_")
        net.initialize()
        selection, done = Selection(net, config), 0
        for epoch, ser in enumerate(sers):
            net.weight.set_data(np.full((1, 1), epoch))
            done += 1
            if selection.stops_after(epoch, ser):
                break
            if interrupted:
                standing = selection.standing
                selection = Selection(net, config)
                selection.go_on(*standing)
        selection.restore()
        return done, float(net.weight.data().asscalar())

    assert run(interrupted=True) == run(interrupted=False) == (4, 1.0)


def test_it_says_how_far_the_ledger_had_come(tmp_path):
    state(ledger_size=123, ledger_digest="ab" * 32).write(tmp_path / "s.npz")
    assert read_ledger_mark(tmp_path / "s.npz") == LedgerMark(123, "ab" * 32)
    found = TrainingState.read(tmp_path / "s.npz")
    assert (found.ledger_size, found.ledger_digest) == (123, "ab" * 32)


def test_a_checkpoint_that_confirms_no_ledger_is_refused(tmp_path):
    path = tmp_path / "s.npz"
    write_state(path, {"epochs": 3}, {"weights": ARRAYS})  # as edp_mx 0.1 wrote it
    with pytest.raises(UserError, match="written by edp_mx 0.1 and does not say how far"):
        read_ledger_mark(path)
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(UserError, match="torn or no checkpoint"):
        read_ledger_mark(path)
