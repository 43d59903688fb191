"""Processes that take turns: they answer, stand still else, and end."""

import os
import sys
import textwrap
import time
from pathlib import Path

import pytest
from sides import Side

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"


@pytest.fixture
def program(tmp_path):
    """Makes the command of a side from its program."""

    def command(text):
        script = tmp_path / "side.py"
        script.write_text(textwrap.dedent(text))
        return [sys.executable, str(script)]

    return command


ANSWERS = """
    import os, sys
    from sides import connected
    connection = connected(sys.argv[1], {"steps": 5})
    for order in connection.orders():
        connection.send([order * 2, os.getpid()])
"""
ENVIRONMENT = {"PYTHONPATH": str(BENCHMARKS)}


def state_of(pid):
    """What the kernel says of a process: "T" is stopped, "" is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def comes_to(pid, states):
    """Whether a process is in one of these states within a minute."""
    for _ in range(1200):
        if state_of(pid) in states:
            return True
        time.sleep(0.05)
    return False


def test_a_side_answers_stands_still_between_turns_and_ends(program):
    side = Side(program(ANSWERS), environment=ENVIRONMENT)
    try:
        assert side.about == [{"steps": 5}]
        [[doubled, pid]] = side.turn(21)
        assert doubled == 42
        assert comes_to(pid, "T")
        assert side.turn([1]) == [[[1, 1], pid]]  # and goes on
        assert comes_to(pid, "T")
    finally:
        side.close()
    assert comes_to(pid, ("", "Z"))


def test_all_processes_of_a_side_answer(program):
    command = program(ANSWERS)
    two = "import os, subprocess, sys; " + (
        "[p.wait() for p in [subprocess.Popen(sys.argv[1:]) for _ in range(2)]]"
    )
    side = Side([sys.executable, "-c", two, *command], size=2, environment=ENVIRONMENT)
    try:
        answers = side.turn(3)
        assert [answer[0] for answer in answers] == [6, 6]
        assert len({answer[1] for answer in answers}) == 2
    finally:
        side.close()


@pytest.mark.parametrize(
    "text",
    [
        "raise SystemExit('no such configuration')",
        """
        import sys
        from sides import connected
        connection = connected(sys.argv[1])
        for order in connection.orders():
            raise SystemExit("no such configuration")
        """,
    ],
)
def test_a_side_that_fails_says_why(program, text):
    with pytest.raises(SystemExit, match="no such configuration"):
        Side(program(text), environment=ENVIRONMENT).turn(1)


def test_the_environment_is_added_to_what_is_there(program, monkeypatch):
    monkeypatch.setenv("ALREADY", "here")
    text = """
        import os, sys
        from sides import connected
        connection = connected(sys.argv[1], [os.environ[n] for n in ("ALREADY", "OMP_NUM_THREADS")])
        list(connection.orders())
    """
    side = Side(program(text), environment={**ENVIRONMENT, "OMP_NUM_THREADS": "3"})
    side.close()
    assert side.about == [["here", "3"]]
    assert os.environ.get("OMP_NUM_THREADS") != "3"
