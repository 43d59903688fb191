"""What the launcher refuses, and what it sends along."""

import os
import subprocess
import sys
from unittest import mock

import pytest
from support.commands import from_a_shell
from support.refusals import one_sentence

from edp_mx.runtime import launcher, processes


@pytest.mark.parametrize(
    "given, sentence",
    [
        ({"hosts": "localhost:3"}, "localhost:3 has 3 slots for 2 workers"),
        ({"hosts": "localhost"}, "write it as host1:slots,host2:slots"),
        ({"hosts": "localhost:1,no.such.host.invalid:1"}, "no.such.host.invalid is unknown here"),
        ({"hosts": "localhost:1,192.0.2.1:1", "nic": "nic7"}, "NIC=nic7: no such interface"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(given, sentence):
    one_sentence(sentence, launcher.launch, ["true"], workers=2, **given)


def test_the_interfaces_that_there_are_are_named():
    one_sentence(r"there are .*lo \(127\.0\.0\.1\)", launcher._interface, {"192.0.2.1"}, "nic7")


def test_secrets_of_the_environment_stay_on_this_machine():
    sent = {"EDP_MX_DEVICE", "PATH", "OMP_NUM_THREADS", "LC_ALL", "LD_LIBRARY_PATH", "PYTHONPATH"}
    kept = {"AWS_SECRET_ACCESS_KEY", "MYPATH", "HOME", "LANGUAGE"}
    with mock.patch.dict(os.environ, dict.fromkeys(sent | kept, "x"), clear=True):
        assert set(launcher.sent_environment()) == sent


@pytest.mark.parametrize("code", [0, 2, 3, 137])
def test_the_exit_code_is_that_of_the_first_worker_to_fail(code):
    worker = "import os, sys, time; code, rank = int(sys.argv[1]), os.environ['HOROVOD_RANK'];"
    worker += "time.sleep(60 * (rank == '0' and code > 0)); code > 128 and os.kill(os.getpid(), 9);"
    worker += "print('rank', rank); sys.exit(code)"
    run = from_a_shell(
        sys.executable, "-m", "edp_mx.runtime.launcher", "--workers", "2",
        sys.executable, "-c", worker, code, code=code,
    )  # fmt: skip
    said = {3: "worker 1 ended with code 3", 137: "worker 1 was killed by signal 9"}.get(code, "")
    assert said in run.stderr and run.stderr.count("edp-mx:") == bool(said)
    if code == 0:
        assert sorted(run.stdout.splitlines()) == ["[1]<stdout>:rank 1", "rank 0"]


@pytest.mark.parametrize("own", [None, "7"])
def test_workers_wait_for_one_that_was_suspended(own, monkeypatch):
    """By itself Gloo ends a job of which a worker stood still for 30 s, and names nobody."""
    monkeypatch.delenv("HOROVOD_GLOO_TIMEOUT_SECONDS", raising=False)
    given = {} if own is None else {"HOROVOD_GLOO_TIMEOUT_SECONDS": own}
    run = subprocess.run(
        [*processes.launcher(1), sys.executable, "-c",
         "import os; print(os.environ['HOROVOD_GLOO_TIMEOUT_SECONDS'])"],
        env={**os.environ, **given}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert run.stdout.strip() == (own or launcher.PATIENCE)
