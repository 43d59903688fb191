"""What the tests of the data share."""

import hashlib
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture
def real_corpus(corpora):
    """Name → folder of a real corpus; skips the test where it is absent."""

    def find(name: str) -> Path:
        if not (corpora / name).is_dir():
            pytest.skip(f"the real corpus {name} is not in {corpora} (set EDP_MX_DATA)")
        return corpora / name

    return find


@pytest.fixture(scope="session")
def digest():
    """Arrays of places → a hash of them as int64, whatever type they are kept in."""

    def find(arrays) -> str:
        joined = b"|".join(np.asarray(array, np.int64).tobytes() for array in arrays)
        return hashlib.sha256(joined).hexdigest()[:16]

    return find
