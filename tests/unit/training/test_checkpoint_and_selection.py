"""Weights on disk, and which epoch's weights a run ends with."""

import io
import math
import resource
import zipfile

import mxnet as mx
import numpy as np
import pytest
from mxnet.gluon import nn
from support.refusals import one_sentence

from edp_mx.dp.weights import load_weights, save_weights, set_weights, weights_of
from edp_mx.errors import UserError
from edp_mx.tasks.intent_slot.task import fit_length
from edp_mx.training.config import TrainingConfig
from edp_mx.training.selection import Selection


def network(units=3, prefix="net_"):
    net = nn.Dense(units, in_units=2, prefix=prefix)
    net.initialize(mx.init.Normal(1.0))
    return net


def test_weights_are_replaced_after_a_prediction():
    """oneDNN keeps the weight of a convolution with 16 filters in an order of its own from then."""
    net = nn.Conv1D(16, 3, in_channels=30)
    net.initialize()
    net.hybridize()
    wanted = {name: values + 1 for name, values in weights_of(net).items()}
    net(mx.nd.ones((4, 30, 8))).wait_to_read()
    set_weights(net, wanted, "a test")
    for name, values in weights_of(net).items():
        np.testing.assert_array_equal(values, wanted[name])


def test_weights_come_back_bit_for_bit(tmp_path):
    one, other = network(), network()
    one.weight.grad_req = "null"  # frozen ones too
    save_weights(one, tmp_path / "weights.npz")
    load_weights(other, tmp_path / "weights.npz")
    for name, weight in weights_of(one).items():
        assert (weight == weights_of(other)[name]).all()
    assert [path.name for path in tmp_path.iterdir()] == ["weights.npz"]


@pytest.mark.parametrize("other, message", [
    (lambda: network(prefix="b_"), "belongs to another model"),
    (lambda: network(units=4), "has shape"),
])  # fmt: skip
def test_weights_of_another_model_are_refused(tmp_path, other, message):
    save_weights(network(), tmp_path / "weights.npz")
    one_sentence(message, load_weights, other(), tmp_path / "weights.npz")


def executing():
    """A file of weights whose reading would run code."""
    content = io.BytesIO()
    np.savez(content, net_weight=np.array([print], dtype=object))
    return content.getvalue()


def zipped(**members):
    """A `.npz` of raw members, compressed."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, value in members.items():
            archive.writestr(f"{name}.npy", value)
    return content.getvalue()


def encrypted():
    """A file of weights that says of itself that it has a password."""
    content = bytearray(zipped(net_weight=b"\0"))
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(mark) + place] |= 1
    return bytes(content)


@pytest.mark.parametrize(
    "content",
    [b"", b"PK\x03\x04torn", b"not a zip at all", executing(), encrypted()],
    ids=["empty", "torn", "text", "executing", "encrypted"],
)
def test_a_file_that_is_torn_or_would_execute_is_refused_by_name(tmp_path, content):
    (tmp_path / "weights.npz").write_bytes(content)
    with pytest.raises(UserError, match="weights.npz is torn or not a file of weights"):
        load_weights(network(), tmp_path / "weights.npz")


def header(shape, tail=b""):
    """A `.npy` that claims a shape."""
    content = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        content, {"descr": "<f4", "fortran_order": False, "shape": shape}
    )
    return content.getvalue() + tail


def bare_array():
    content = io.BytesIO()
    np.save(content, np.zeros(3, np.float32))
    return content.getvalue()


@pytest.mark.parametrize(
    "content, words",
    [
        (lambda: zipped(foreign=bytes(2**27)), "it would be unpacked to 134,217,728 bytes"),
        (lambda: zipped(a=header((10**15,))), "is torn or not a file of weights"),
        (lambda: zipped(a=header((3,), bytes(4))), "is torn or not a file of weights"),
        (bare_array, "is torn or not a file of weights"),
    ],
    ids=["inflated", "a petabyte", "cut", "npy"],
)
def test_an_archive_that_lies_is_refused_before_memory_is_taken(tmp_path, content, words):
    (tmp_path / "weights.npz").write_bytes(content())
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    one_sentence(words, load_weights, network(), tmp_path / "weights.npz")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2**17  # KB


@pytest.mark.parametrize(
    "harm, words",
    [
        (lambda array: array * np.float32("nan"), "is not finite; the file is damaged"),
        (lambda array: array + np.float32("inf"), "is not finite"),
        (lambda array: array.astype(np.float64), "type float64, but the model needs"),
        (lambda array: array.astype("U3"), "has shape"),
    ],
    ids=["nan", "inf", "float64", "words"],
)
def test_weights_that_a_model_cannot_have_change_nothing(harm, words):
    net = network()
    before = weights_of(net)
    last = list(before)[-1]
    harmed = {name: array + 1 for name, array in before.items()}
    one_sentence(words, set_weights, net, {**harmed, last: harm(before[last])}, "weights.npz")
    for name, array in weights_of(net).items():
        assert (array == before[name]).all()


SERS = [0.5, 0.2, 0.3, 0.4, 0.1]
BEST = {"checkpoint": "best_on_validation"}


@pytest.mark.parametrize("is_interrupted", [False, True])
@pytest.mark.parametrize(
    "sers, settings, epochs, weight",
    [
        (SERS, {}, 5, 5),  # by default all epochs run and the last weights stay
        (SERS[:4], BEST, 4, 2),
        ([math.nan, 0.3, 0.4], BEST, 3, 2),
        (SERS, {"early_stop_patience": 2}, 4, 4),
        (SERS, {"early_stop_patience": 3}, 5, 5),
        (SERS, {**BEST, "early_stop_patience": 2}, 4, 2),
    ],
)
def test_which_weights_a_run_ends_with(sers, settings, epochs, weight, is_interrupted):
    """Weights 1, 2, 3 … after each epoch; interrupted after each of them, or not."""
    net, done = network(), 0
    selection = Selection(net, TrainingConfig(**settings))
    for epoch, ser in enumerate(sers):
        set_weights(net, {k: np.full_like(v, epoch + 1) for k, v in weights_of(net).items()}, "")
        done += 1
        stops = selection.stops_after(epoch, ser)
        if is_interrupted:
            standing = selection.standing
            selection = Selection(net, TrainingConfig(**settings))
            assert not selection.has_stopped(-1)
            selection.resume(*standing)
        assert selection.has_stopped(epoch) == stops  # so that a resumed run trains no further
        if stops:
            break
    selection.restore()
    assert (done, int(net.weight.data()[0, 0].asscalar())) == (epochs, weight)


def test_an_utterance_that_was_cut_gets_o_for_the_rest():
    assert fit_length(["B-a", "I-a"], 4) == ("B-a", "I-a", "O", "O")
