"""What workers send each other comes back bit for bit, and runs nothing."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as stn

from edp_mx.runtime.messages import decode, encode

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary()
ARRAYS = stn.arrays(stn.scalar_dtypes(), stn.array_shapes(min_dims=0, min_side=0, max_side=3))
KEYS = st.text() | st.integers() | st.tuples(st.integers(), st.text())
VALUES = st.recursive(
    SCALARS | ARRAYS,
    lambda inner: (
        st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(KEYS, inner, max_size=3)
    ),
    max_leaves=8,
)


def assert_same(one, other):
    assert type(one) is type(other)
    if isinstance(one, (np.ndarray, np.generic)):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        assert one.tobytes() == other.tobytes()
    elif isinstance(one, (list, tuple)):
        assert len(one) == len(other)
        for left, right in zip(one, other):
            assert_same(left, right)
    elif isinstance(one, dict):
        assert_same(list(one.items()), list(other.items()))
    else:
        assert one == other or (math.isnan(one) and math.isnan(other))


@given(VALUES)
def test_a_plain_value_comes_back_with_its_types_and_bits(value):
    assert_same(decode(encode(value)), value)


def test_a_received_array_may_be_changed():
    decode(encode(np.zeros(3)))[0] = 1.0


class Trap:
    def __reduce__(self):
        return pytest.fail, ("a message was run",)


@pytest.mark.parametrize("value", [Trap(), [Trap()], np.array([Trap()]), {1}, object])
def test_what_is_not_plain_is_not_sent(value):
    with pytest.raises(TypeError, match="plain values"):
        encode(value)


def forged(text, rest=b""):
    return len(text).to_bytes(8, "little") + text + rest


@pytest.mark.parametrize(
    "message",
    [
        b"", b"\x01", pickle.dumps(Trap()), forged(pickle.dumps(Trap())), forged(b'{"array": 1}'),
        forged(b'{"array": ["|O", [1]]}', b"12345678"), forged(b'{"array": ["<f4", [-1]]}'),
        forged(b'{"array": ["<f4", [4]]}', b"1234"), forged(b'{"bytes": 9}', b"1"),
        forged(b'{"Trap": []}'), forged(b"[1"), forged(b"1", b"1"), encode([b"12"])[:-1],
        forged(b'{"bytes": -1}', b"12"), forged(b"[" * 100_000),
    ],
)  # fmt: skip
def test_a_message_of_somebody_else_is_refused(message):
    with pytest.raises(ValueError, match="not a message of a worker"):
        decode(message)
