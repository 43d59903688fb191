"""Workers are kept from test to test of a file, and end with it."""

import pytest
from support.workers import end_workers


@pytest.fixture(scope="module", autouse=True)
def workers_of_the_file():
    yield
    end_workers()
