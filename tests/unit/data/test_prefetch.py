"""What is prefetched comes in order, fails where it would have failed, and leaves no thread."""

import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edp_mx.data.prefetch import prefetch


def threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("prefetch")]


@given(st.lists(st.integers(), max_size=9), st.integers(1, 4))
def test_it_is_map(items, depth):
    assert list(prefetch(lambda n: (n, n + 1), items, depth=depth)) == [(n, n + 1) for n in items]
    assert not threads()


@given(st.integers(0, 8), st.integers(1, 4))
def test_an_error_comes_where_its_result_would_have_come(place, depth):
    def make(n):
        if n == place:
            raise ValueError(f"number {n}")
        return n

    seen = []
    with pytest.raises(ValueError, match=f"number {place}"):
        for n in prefetch(make, range(10), depth=depth):
            seen.append(n)  # noqa: PERF402 (what came before the error is wanted)
    assert seen == list(range(place)) and not threads()


def test_an_error_of_the_items_is_raised_too():
    def items():
        yield 1
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        list(prefetch(str, items()))
    assert not threads()


def test_who_breaks_off_leaves_no_thread_and_makes_nothing_more():
    made = []
    results = prefetch(lambda n: made.append(n) or n, range(1000), depth=2)
    for n in results:
        if n == 3:
            break
    results.close()
    assert not threads()
    count = len(made)
    assert count <= 7
    time.sleep(0.05)
    assert len(made) == count


def test_no_more_than_depth_are_made_while_the_caller_works():
    made, drawn_in = [], []

    def items():
        for n in range(10):
            drawn_in.append(threading.current_thread())
            yield n

    results = prefetch(lambda n: made.append((n, threading.current_thread())), items(), depth=2)
    next(results)
    deadline = time.monotonic() + 120
    while len(made) < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.05)
    assert [n for n, _ in made] == [0, 1, 2]  # the one that was taken, and two more
    assert {thread.name[:8] for _, thread in made} == {"prefetch"}
    assert set(drawn_in) == {threading.current_thread()}
    results.close()
