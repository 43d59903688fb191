"""Training over several hosts, each with its own network, name, processes and sshd."""

import os
import subprocess
import time

import numpy as np
import pytest
from support.commands import (
    QUICKSTART,
    ROOT,
    TINY,
    finish,
    lines_of,
    rows,
    start,
    wait_for,
    weights,
)
from support.hosts import CLOCK, NIC, Hosts, why_not
from support.workers import PATIENCE

pytestmark = pytest.mark.slow
TRAIN = ROOT / "launch" / "train.sh"
SETTINGS = ["--set", *TINY, "data.size=200"]
LIMIT = 30  # watchdog_seconds of a host that is cut off; a busy machine is no failure
FOR_LONG = [*SETTINGS, "training.epochs=100000"]


@pytest.fixture
def hosts(tmp_path):
    if why_not():
        pytest.skip(why_not())
    given = Hosts(tmp_path, "a", "b")
    yield given
    given.close()


@pytest.fixture(scope="module")
def at_home(tmp_path_factory):
    """The weights of the same training by two workers of one machine."""
    run = tmp_path_factory.mktemp("home") / "run"
    finish(start(TRAIN, QUICKSTART, "--run", run, *SETTINGS, "training.epochs=2", NP="2"))
    return weights(run)


def begin(hosts, *settings, **environment):
    """A job on host a with a worker on each host, once it trains; its run and its output."""
    run, output = hosts.folder / "run", hosts.folder / "output"
    job = hosts.train(output, TRAIN, QUICKSTART, "--run", run, *settings, on="a", **environment)
    return job, run, output


def wait(job, output, words):
    """The output of an ended job, which passes through pipes."""
    job.wait(timeout=PATIENCE)
    deadline = time.monotonic() + 30
    while not all(part in output.read_text() for part in words) and time.monotonic() < deadline:
        time.sleep(0.1)
    said = output.read_text()
    assert all(part in said for part in words), said
    assert "Traceback" not in said
    return said


@pytest.mark.parametrize("nic", [NIC, ""])
def test_two_hosts_train_what_one_machine_does_and_listen_to_each_other_alone(hosts, at_home, nic):
    job, run, output = begin(hosts, *SETTINGS, "training.epochs=2", NIC=nic)
    seen = set()
    while job.poll() is None:
        for host in hosts.all.values():
            seen |= {(host.name, address) for address, _ in host.listening()}
    wait(job, output, ["The run directory is"])
    assert job.returncode == 0
    assert seen == {(host.name, host.address) for host in hosts.all.values()}
    for name, value in weights(run).items():
        np.testing.assert_array_equal(value, at_home[name])


def test_clocks_that_differ_change_nothing(hosts, at_home):
    if not CLOCK.exists():
        pytest.skip(f"{CLOCK} is not installed")
    hosts.set_clock("b", "+40d")
    there = [*hosts.all["a"].command("ssh", "-F", hosts.folder / "ssh_config", "b", "date +%s")]
    told = int(subprocess.run(there, capture_output=True, check=True).stdout)
    assert told - time.time() > 39 * 24 * 3600
    job, run, output = begin(hosts, *SETTINGS, "training.epochs=2", NIC=NIC)
    wait(job, output, ["The run directory is"])
    for name, value in weights(run).items():
        np.testing.assert_array_equal(value, at_home[name])


def test_a_host_that_dies_ends_the_job_which_goes_on_when_it_is_back(hosts):
    job, run, output = begin(hosts, "--max-restarts", "1", *SETTINGS, "training.epochs=60")
    wait_for(lambda: lines_of(run / "metrics.jsonl") > 2, job)
    hosts.all["b"].die()
    wait_for(lambda: "restart 1 of 1 in 5 s: it goes on after epoch" in output.read_text(), job)
    hosts.revive("b")
    said = wait(job, output, ["ssh could not reach b, or lost it", "The run directory is"])
    assert job.returncode == 0 and said.count("resuming the run") == 1
    assert [row["epoch"] for row in rows(run)] == list(range(1, 61))


def test_a_host_that_is_cut_off_ends_the_job_within_the_limit(hosts):
    limit = f"training.watchdog_seconds={LIMIT}"
    job, run, output = begin(hosts, *FOR_LONG, limit, NIC=NIC)
    wait_for(lambda: lines_of(run / "metrics.jsonl") > 1, job)
    (there,) = hosts.all["b"].processes("train")
    hosts.cut_off("b")
    began = time.monotonic()
    wait(job, output, [f"nothing has moved for {LIMIT} s", "resume it with: NP=2 HOSTS=a:1,b:1"])
    assert job.returncode == 4
    assert time.monotonic() - began < 10 * LIMIT  # a busy machine is no failure
    while os.path.exists(f"/proc/{there}"):  # the worker that nobody reaches ends by itself
        assert time.monotonic() - began < 10 * LIMIT
        time.sleep(0.2)
    assert (run / "checkpoint.npz").exists()


def test_a_worker_that_is_killed_on_another_host_is_named(hosts):
    job, run, output = begin(hosts, *FOR_LONG)
    wait_for(lambda: lines_of(run / "metrics.jsonl"), job)
    os.kill(hosts.all["b"].processes("train")[0], 9)
    wait(job, output, ["worker 1 on b was killed by signal 9", "resume it with"])
    assert job.returncode == 137


def test_a_host_with_another_key_is_not_spoken_to(hosts):
    known = hosts.folder / "known_hosts"
    known.write_text("".join(line for line in known.open() if not line.startswith("b,")))
    job, run, output = begin(hosts, *FOR_LONG)
    wait(job, output, ["Host key verification failed", "ssh could not reach b"])
    assert job.returncode == 255
    assert not hosts.all["b"].processes("train")
