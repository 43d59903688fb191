"""The cases of `tests/golden/privacy_vectors.json`, made by an independent implementation."""

import json
from pathlib import Path

GOLDEN = Path(__file__).parents[1] / "golden" / "privacy_vectors.json"


def cases(function):
    """All cases of one function; at least one, so that no test passes for want of them."""
    found = [case for case in json.loads(GOLDEN.read_text())["cases"] if case["fn"] == function]
    assert found, function
    return found
