"""Progress bars in a pipe, where each state is a line."""

import pytest

from edp_mx.runtime import progress


@pytest.mark.parametrize("step", [-3600.0, 3600.0])
def test_a_bar_goes_on_when_the_clock_is_set(step, monkeypatch, capsys):
    """tqdm's own bar said nothing more until the clock had come back to where it was."""
    now = [1.7e9]
    monkeypatch.setattr("tqdm.std.time", lambda: now[0])
    for name in ("mininterval", "delay"):
        monkeypatch.setitem(progress.PIPE_PACE, name, 0.0)
    for _ in progress.progress_bar(is_first=True)(range(5), "epoch 1", 5):
        now[0] += step
    lines = capsys.readouterr().err.splitlines()
    assert [f"{i}/5" in line for i, line in enumerate(lines)] == [True] * 6
    assert all("[00:" in line for line in lines)


def test_only_one_worker_shows_a_bar(monkeypatch, capsys):
    monkeypatch.setitem(progress.PIPE_PACE, "delay", 0.0)
    assert list(progress.progress_bar(is_first=False)(range(3), "epoch 1", 3)) == [0, 1, 2]
    assert capsys.readouterr().err == ""
