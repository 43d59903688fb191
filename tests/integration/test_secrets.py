"""Keys of noise and draws stay in the memory of the process: no file, log or core dump has them."""

import base64
import os
import resource
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support import commands
from support.commands import CONFIGS, QUICKSTART, ROOT, edp_mx, interrupted, lines_of, wait_for

from edp_mx.dp.privacy.noise import NoiseStream
from edp_mx.training.loop import TrainingLoop

SETTINGS = [*commands.TINY, "data.size=300", "training.epochs=3", "privacy.target_epsilon=null",
            "privacy.noise_multiplier=1", "training.checkpoints.every_steps=2"]  # fmt: skip
DP_SGD = [QUICKSTART, CONFIGS / "mechanism" / "dp_sgd.yaml"]
ABORTS = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2)
if sys.argv[1] == "noise":
    from edp_mx.dp.privacy.noise import NoiseStream
    NoiseStream.from_operating_system()
elif sys.argv[1] == "draws":
    from edp_mx.dp.sampling.poisson import SecretWords
    SecretWords("sampling", insecure_fixed_seed=None, rank=0, epoch=0)
os.abort()
"""


def written_forms(key):
    """The ways in which somebody might write a key down."""
    return [key, key.hex().encode(), key.hex().upper().encode(), base64.b64encode(key),
            base64.urlsafe_b64encode(key), repr(key)[2:-1].encode(), str(list(key)).encode(),
            str(int.from_bytes(key, "big")).encode(), str(int.from_bytes(key, "little")).encode(),
            ]  # fmt: skip


@pytest.mark.parametrize("gaussian", ["plain", "hardened"])
def test_no_file_or_output_or_variable_has_the_bytes_of_a_key(tmp_path, monkeypatch, gaussian):
    keys, take, step = [], os.urandom, TrainingLoop._step

    def recorded(size):
        keys.append(take(size))
        return keys[-1]

    def interrupted(*arguments):
        if arguments[-2:] == (1, 5):  # in the second epoch: checkpoints are there
            raise KeyboardInterrupt
        return step(*arguments)

    monkeypatch.setattr(os, "urandom", recorded)
    monkeypatch.setattr(TrainingLoop, "_step", interrupted)
    settings = [*SETTINGS, "training.batch_size=16", f"privacy.noise.gaussian={gaussian}"]
    ended = edp_mx("train", *DP_SGD, "--run", tmp_path / "run", "--set", *settings, code=130)
    keys = [key for key in keys if len(key) == 32]
    assert len(keys) >= 3  # of the noise, and of the draws of two epochs
    keys += [NoiseStream(key=key).mask_key for key in keys]
    content = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    assert {"checkpoint.npz", "checkpoint-1.npz", "rank_0.log"} <= {path.name for path in content}
    content["output"] = (ended.stdout + ended.stderr).encode()
    content["environment"] = repr(dict(os.environ)).encode() + b"".join(os.environb.values())
    for name, found in content.items():
        for key in keys:
            assert not any(form in found for form in written_forms(key)), name
    assert NoiseStream(key=keys[0]).fingerprint.encode() not in content["output"]


def test_the_search_finds_what_is_there(tmp_path):
    key = bytes(range(100, 132))
    np.savez(tmp_path / "a.npz", key=np.frombuffer(key, np.uint8))
    assert key in (tmp_path / "a.npz").read_bytes()
    assert all(form in b"x" + form + b"y" for form in written_forms(key))


def has_dumped(kind):
    """Whether the kernel made a core dump of a process that aborts with its limit taken away."""
    process = subprocess.Popen(
        [sys.executable, "-c", ABORTS, kind], env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    _, status = os.waitpid(process.pid, 0)
    process.returncode = status  # it was waited for
    assert os.WIFSIGNALED(status)
    return os.WCOREDUMP(status)


can_dump = pytest.mark.skipif(
    resource.getrlimit(resource.RLIMIT_CORE)[1] == 0,
    reason="this machine forbids core dumps already, so that nothing would be seen",
)


@can_dump
def test_a_process_that_holds_a_key_leaves_no_core_dump(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert not has_dumped("noise") and not has_dumped("draws")
    assert not list(tmp_path.iterdir())
    if not has_dumped("neither"):
        pytest.skip("the kernel writes no core dump here at all")


@can_dump
@pytest.mark.skipif(not Path("/proc/self/limits").exists(), reason="limits are read from /proc")
def test_a_training_has_its_core_dumps_off(tmp_path):
    run = tmp_path / "run"
    allowed = 'ulimit -Sc "$(ulimit -Hc)" && exec "$@"'  # as it may not be for this process
    process = commands.start(shutil.which("bash"), "-c", allowed, "bash", sys.executable, "-m",
                             "edp_mx", "train", *DP_SGD, "--run", run, "--set", *SETTINGS,
                             "training.epochs=10000", "privacy.sampler=shuffle",
                             "training.batch_size=16")  # fmt: skip
    try:
        wait_for(lambda: lines_of(run / "privacy_ledger.jsonl") >= 3, process)
        limits = Path(f"/proc/{process.pid}/limits").read_text().splitlines()
        (core,) = [line.split() for line in limits if line.startswith("Max core file size")]
        assert core[4] == "0"
    finally:
        process.kill()
        process.communicate()


def test_a_run_is_its_owner_s_alone(tmp_path):
    """Whatever the umask: the folder and all in it that holds more than settings."""
    run, mask = tmp_path / "run", os.umask(0)
    try:
        interrupted("train", *DP_SGD, "--run", run, "--set", *SETTINGS, "training.batch_size=16",
                    after=3)  # fmt: skip
    finally:
        os.umask(mask)
    assert stat.S_IMODE(run.stat().st_mode) == 0o700 and (run / "checkpoint.npz").exists()
    are_open = {path.name for path in run.rglob("*") if path.stat().st_mode & 0o077}
    assert are_open <= {"README.md", "config.yaml"}  # written before the training began
