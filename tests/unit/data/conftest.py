"""What the tests of the data share."""

from __future__ import annotations

from pathlib import Path

import pytest

from edp_mx.data.utterance import Utterance


@pytest.fixture
def real_corpus(corpora):
    """Name → folder of a real corpus; skips the test where it is absent."""

    def find(name: str) -> Path:
        if not (corpora / name).is_dir():
            pytest.skip(f"the real corpus {name} is not in {corpora} (set EDP_MX_DATA)")
        return corpora / name

    return find


@pytest.fixture
def say():
    """Text → an utterance without slots."""

    def make(text: str, intent: str = "x", id: str = "") -> Utterance:
        tokens = tuple(text.split())
        return Utterance(tokens, ("O",) * len(tokens), intent, id)

    return make
