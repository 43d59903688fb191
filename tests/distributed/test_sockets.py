"""A job on one machine speaks with itself alone: no socket of it can be reached from elsewhere."""

import os
import signal
import time
from urllib.request import Request, urlopen

import pytest
from support.commands import QUICKSTART, ROOT, TINY, lines_of, start
from support.sockets import IS_CONNECTED, LISTENS, sockets_of
from support.workers import PATIENCE

LOOPBACK = "127.0.0.1"


@pytest.fixture
def seen(tmp_path):
    """All sockets of a real job of two workers, from its start into its epochs; and its end."""
    settings = [*TINY, "data.size=200", "training.epochs=100000"]
    command = [ROOT / "launch" / "train.sh", QUICKSTART, "--run", tmp_path / "run", "--set"]
    with open(tmp_path / "output", "w") as output:
        job = start(*command, *settings, output=output, NP="2")
    found, deadline = set(), time.monotonic() + PATIENCE
    while not lines_of(tmp_path / "run" / "metrics.jsonl") and time.monotonic() < deadline:
        assert job.poll() is None, (tmp_path / "output").read_text()
        found |= sockets_of(job.pid)
    yield found, job
    os.killpg(job.pid, signal.SIGTERM)
    job.wait(timeout=PATIENCE)


def test_without_other_hosts_everything_stays_on_the_loopback_interface(seen):
    found, job = seen
    listening = [each for each in found if each.state == LISTENS]
    assert listening and {each.here for each in listening} == {LOOPBACK}
    connected = [each for each in sockets_of(job.pid) if each.state == IS_CONNECTED]
    assert len(connected) >= 2  # each worker holds an end of theirs
    assert {address for each in connected for address in (each.here, each.there)} == {LOOPBACK}
    # what is found is the rendezvous: from this machine it can be written to
    answers = []
    for each in {each for each in sockets_of(job.pid) if each.state == LISTENS}:
        put = Request(f"http://{LOOPBACK}:{each.port}/scope/key", data=b"x", method="PUT")
        answers.append(urlopen(put, timeout=60).status)
    assert answers == [200]
