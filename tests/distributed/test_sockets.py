"""A job on one machine speaks with itself alone: no socket of it can be reached from elsewhere.

Nor does the job outlive a worker that is killed, which is seen here on the same job.
"""

import os
import signal
from urllib.request import Request, urlopen

import pytest
from support.sockets import IS_CONNECTED, LISTENS, sockets_of
from support.two_workers import a_job, pid_of, wait_for_end

LOOPBACK = "127.0.0.1"
LONG = 3600  # watchdog_seconds: no test is as long


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """A job, its folder, and all sockets that it had from its start into its epochs."""
    folder, found = tmp_path_factory.mktemp("job"), set()
    with a_job(folder, LONG, lambda process: found.update(sockets_of(process.pid))) as process:
        yield process, folder, found


def test_without_other_hosts_everything_stays_on_the_loopback_interface(job):
    process, _, found = job
    listening = [each for each in found if each.state == LISTENS]
    assert listening and {each.here for each in listening} == {LOOPBACK}
    connected = [each for each in sockets_of(process.pid) if each.state == IS_CONNECTED]
    assert len(connected) >= 2  # each worker holds an end of theirs
    assert {address for each in connected for address in (each.here, each.there)} == {LOOPBACK}
    # what is found is the rendezvous: from this machine it can be written to
    answers = []
    for each in {each for each in sockets_of(process.pid) if each.state == LISTENS}:
        put = Request(f"http://{LOOPBACK}:{each.port}/scope/key", data=b"x", method="PUT")
        answers.append(urlopen(put, timeout=60).status)
    assert answers == [200]


def kill_and_see(process, folder, rank):
    os.kill(pid_of(folder / "run", rank), signal.SIGKILL)
    words = f"worker {rank} (process", "died without a word"
    code, output = wait_for_end(process, folder / "output", words)
    assert code != 0
    assert all(part in output for part in words), output
    assert "Traceback" not in output
    assert not (folder / "run" / "results.json").exists()


def test_a_killed_worker_ends_the_job_and_is_named(job):
    kill_and_see(*job[:2], rank=0)


@pytest.mark.slow
def test_another_killed_worker_ends_the_job_and_is_named(tmp_path):
    with a_job(tmp_path, LONG) as process:
        kill_and_see(process, tmp_path, rank=1)
