"""First values: by name and seed alone, with the spread that was meant."""

import subprocess
import sys
import zlib

import mxnet as mx
import numpy as np
import pytest
from support.models import tiny_model

from edp_mx.models.initialization import initial_values


def checksum(seed=3, **config):
    """One number for all parameters' names and values."""
    total = 0
    for name, parameter in tiny_model(seed=seed, **config).collect_params().items():
        total = zlib.crc32(name.encode() + parameter.data().asnumpy().tobytes(), total)
    return total


def test_same_in_another_process_and_after_other_draws():
    code = "import test_initialization; print(test_initialization.checksum())"
    other = subprocess.run(
        [sys.executable, "-c", code],
        env={"PATH": "", "PYTHONPATH": ":".join(sys.path)},
        stdout=subprocess.PIPE,
        check=True,
        timeout=500,  # also on a busy machine
    )
    mx.nd.random.normal(shape=(3,)).wait_to_read()
    np.random.random()
    assert checksum() == int(other.stdout)
    assert checksum(seed=4) != checksum()


def test_one_more_layer_changes_no_other_parameter():
    two, three = (tiny_model(num_layers=layers).collect_params() for layers in (2, 3))
    assert set(two) < set(three)
    for name in two:
        assert (two[name].data().asnumpy() == three[name].data().asnumpy()).all(), name


@pytest.mark.parametrize(
    ("name", "shape", "bound"),
    [
        ("clc_words_weight", (50, 300), 0.1),
        ("clc_characters_embedding_weight", (80, 30), (3 / 30) ** 0.5),
        ("clc_characters_convolution_weight", (30, 30, 3), (6 / 180) ** 0.5),
        ("clc_lstm_forward0_l0_i2h_weight", (4 * 384, 330), (6 / 714) ** 0.5),
        ("clc_lstm_forward0_l0_h2h_weight", (4 * 384, 384), (6 / 768) ** 0.5),
        ("slot_dense_weight", (127, 768), (6 / 895) ** 0.5),
    ],
)
def test_spread(name, shape, bound):
    values = initial_values(name, shape, np.random.default_rng(0))
    assert np.abs(values).max() <= bound
    assert np.abs(values).max() == pytest.approx(bound, rel=0.01)
    assert values.std() == pytest.approx(bound / 3**0.5, rel=0.05)


def test_padding_biases_and_forget_gates():
    parameters = {n: p.data().asnumpy() for n, p in tiny_model().collect_params().items()}
    for name, values in parameters.items():
        if name.endswith("i2h_bias"):
            assert values.tolist() == [0] * 6 + [1] * 6 + [0] * 12
        elif name.endswith(("bias", "transitions", "start", "end")):
            assert not values.any(), name
        else:
            assert values.any(), name
    assert not parameters["clc_words_weight"][0].any()
    assert not parameters["clc_characters_embedding_weight"][0].any()
