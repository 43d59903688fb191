"""Where a run and its optimizer stand, on disk and back, and on every worker."""

import math
from dataclasses import dataclass

import gluonnlp  # noqa: F401 (registers BERTAdam)
import mxnet as mx
import numpy as np
import pytest
from mxnet import autograd, gluon
from mxnet.gluon import nn
from support.refusals import one_sentence

from edp_mx.dp import checkpoint_file
from edp_mx.dp.accounting.ledger import LedgerMark
from edp_mx.dp.checkpoint_file import newest_mark, place_of, read_ledger_mark, write_checkpoint
from edp_mx.dp.state import RunState, optimizer_arrays, set_optimizer_arrays
from edp_mx.dp.weights import weights_of
from edp_mx.runtime.distributed import Workers
from edp_mx.training.state import TrainingState


@dataclass(frozen=True, eq=False)
class Other(RunState):
    """A run of another kind."""

    KIND = "another thing"

    step: int
    fingerprint: str
    num_workers: int


ARRAYS = {"a/b": np.arange(6, dtype=np.float32).reshape(2, 3), "n": np.array(4)}
FACTS = {
    TrainingState: {"epochs": 3, "best_cost": math.inf, "best_epoch": 1, "ledger_size": 123,
                    "ledger_digest": "ab" * 32},
    Other: {"step": 7, "fingerprint": "ab", "num_workers": 2},
}  # fmt: skip
SO_FAR = {"steps": 5, "epoch_seconds": 2.5, "so_far": {"loss": np.array([1.5, 2.5])}}
KINDS = pytest.mark.parametrize("kind", FACTS)


class Worker(Workers):
    """One of two workers, which is told of what rank 0 has."""

    said, sent = [], {}

    def gather(self, value):
        if self.is_first:
            self.said.append(value)
            return [value, None]
        return [self.said.pop(0), value]

    def broadcast_array(self, array, name):
        if self.is_first:
            self.sent[name] = array.copy()
        else:
            array[:] = self.sent[name]


def state(kind=TrainingState, **changes):
    return kind(**{"seconds": 1.5, "weights": ARRAYS, "optimizer": {}, **FACTS[kind], **changes})


def assert_same(one, other):
    for name, value in vars(one).items():
        found = getattr(other, name)
        assert type(found) is type(value)
        if not isinstance(value, dict):
            assert found == value
            continue
        assert set(found) == set(value)
        for key, array in value.items():
            np.testing.assert_array_equal(found[key], array)
            assert found[key].dtype == array.dtype and found[key].shape == array.shape


@KINDS
@pytest.mark.parametrize("optimizer", [{}, ARRAYS])
def test_what_was_written_is_read(kind, optimizer, tmp_path):
    path = tmp_path / "checkpoint.npz"
    assert kind.resume(path, Workers(0, 1, 0)) is None
    written = state(kind, optimizer=optimizer)
    written.write(path)
    assert_same(kind.read(path), written)
    assert_same(kind.resume(path, Workers(0, 1, 0)), written)


@KINDS
def test_all_workers_resume_from_the_first_one_s_checkpoint(kind, tmp_path):
    path = tmp_path / "checkpoint.npz"
    assert kind.resume(path, Worker(0, 2, 0)) is None
    assert kind.resume(path, Worker(1, 2, 1)) is None
    written = state(kind, optimizer=ARRAYS)
    written.write(path)
    first = kind.resume(path, Worker(0, 2, 0))
    path.unlink()  # the other's disk has none
    assert_same(first, written)
    assert_same(kind.resume(path, Worker(1, 2, 1)), written)


def test_the_place_within_an_epoch_is_read_without_the_weights(tmp_path):
    path = tmp_path / "checkpoint.npz"
    assert place_of(path) == (0, 0)
    state().write(path)
    assert place_of(path) == (3, 0)
    state(**SO_FAR).write(path)
    assert place_of(path) == (3, 5)
    assert_same(TrainingState.read(path), state(**SO_FAR))
    path.write_bytes(path.read_bytes()[:-1])
    assert place_of(path) == (3, 0)  # of the one before


@KINDS
def test_torn_missing_or_foreign_files_are_refused(kind, tmp_path, monkeypatch):
    path = tmp_path / "checkpoint.npz"
    one_sentence("there is no", kind.read, path)
    state(kind).write(path)
    whole = path.read_bytes()
    for content in (b"", whole[:10], whole[: len(whole) // 2], b"PK" + whole[:50]):
        path.write_bytes(content)
        one_sentence(r"checkpoint\.npz is torn or not a checkpoint", kind.read, path)
    with monkeypatch.context() as patched:  # the arrays would be executed
        patched.setattr(checkpoint_file, "write_npz", lambda file, each: np.savez(file, **each))
        write_checkpoint(path, {"weights/a": np.array([print], dtype=object)})
    one_sentence("torn or not a checkpoint", kind.read, path)
    (other,) = set(FACTS) - {kind}
    state(other).write(path)
    one_sentence(f"not a checkpoint of {kind.KIND}", kind.read, path)


def test_it_says_how_far_the_ledger_had_come(tmp_path):
    path = tmp_path / "s.npz"
    state().write(path)
    assert read_ledger_mark(path) == LedgerMark(123, "ab" * 32)
    path.unlink()
    write_checkpoint(path, {"facts/epochs": np.array(3), "weights/w": np.zeros(2)})
    one_sentence("does not say how far", read_ledger_mark, path)
    path.write_bytes(path.read_bytes()[:50])
    one_sentence("is torn: its checksum is missing", newest_mark, path)


def network(weights=None):
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(nn.Dense(3, in_units=4), nn.Dense(1, in_units=3))
    net.initialize(mx.init.Zero())
    for name, parameter in net.collect_params().items():
        if weights:
            parameter.set_data(mx.nd.array(weights[name]))
    return net


def trainer_of(net, optimizer):
    return gluon.Trainer(net.collect_params(), optimizer, {"learning_rate": 0.05}, kvstore=None)


def steps(net, trainer, inputs):
    for x in inputs:
        with autograd.record():
            loss = (net(mx.nd.array(x)) - 1).square().mean()
        loss.backward()
        trainer.step(1)


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_an_interrupted_optimizer_goes_on_exactly(optimizer, generator):
    start = {name: generator.normal(size=p.shape) for name, p in network().collect_params().items()}
    inputs = generator.normal(size=(6, 5, 4))
    whole = network(start)
    steps(whole, trainer_of(whole, optimizer), inputs)

    first = network(start)
    trainer = trainer_of(first, optimizer)
    steps(first, trainer, inputs[:3])
    arrays = optimizer_arrays(trainer)
    second = network(weights_of(first))
    trainer = trainer_of(second, optimizer)
    set_optimizer_arrays(trainer, arrays, "checkpoint")
    steps(second, trainer, inputs[3:])
    for name, value in weights_of(whole).items():
        np.testing.assert_array_equal(value, weights_of(second)[name])
    if optimizer != "sgd":  # which has nothing to remember: the test can fail
        third = network(weights_of(first))
        steps(third, trainer_of(third, optimizer), inputs[3:])
        assert not np.array_equal(weights_of(third)["net_dense0_weight"],
                                  weights_of(whole)["net_dense0_weight"])  # fmt: skip


def test_arrays_of_another_network_are_refused(generator):
    net = network()
    trainer = trainer_of(net, "adam")
    steps(net, trainer, generator.normal(size=(1, 5, 4)))
    arrays = optimizer_arrays(trainer)
    fresh = trainer_of(network(), "adam")
    for changed in (
        {**arrays, "other/0": np.zeros(3)},
        {**arrays, "net_dense0_weight/0": np.zeros((2, 2))},
        {name: a for name, a in arrays.items() if name != "net_dense1_bias/1"},
    ):
        one_sentence("checkpoint.npz", set_optimizer_arrays, fresh, changed, "checkpoint.npz")
