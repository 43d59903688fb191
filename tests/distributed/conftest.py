"""Workers are kept from test to test, and end with the last."""

import pytest
from support.workers import end_workers


@pytest.fixture(scope="session", autouse=True)
def workers_end():
    yield
    end_workers()
