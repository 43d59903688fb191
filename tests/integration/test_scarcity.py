"""No disk, no memory, a folder that cannot be written: one sentence, and the run can go on."""

import errno
import subprocess

import psutil
import pytest
from support.commands import QUICKSTART, TINY, edp_mx, start, wait_for
from support.workers import PATIENCE

from edp_mx.training.state import TrainingState

pytestmark = pytest.mark.slow
SETTINGS = ["--set", *TINY, "data.size=200", "training.epochs=100000"]


@pytest.fixture
def disk(tmp_path):
    """A disk of 16 MB of its own."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(folder)]
    tried = subprocess.run(mount, capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"mounting is not permitted: {tried.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def training(run):
    """A run that has written its first checkpoint, and goes on."""
    process = start("train", QUICKSTART, "--run", run, *SETTINGS)
    wait_for((run / "checkpoint.npz").exists, process)
    return process


def fill(folder):
    with open(folder / "ballast", "wb", buffering=0) as ballast:
        try:
            while True:
                ballast.write(bytes(4096))
        except OSError as error:
            assert error.errno == errno.ENOSPC


def one_sentence(process, *words):
    """What a run said at its end, which it was not asked for."""
    _, said = process.communicate(timeout=PATIENCE)
    sentences = [line for line in said.splitlines() if line.startswith("edp-mx train: ")]
    assert process.returncode == 2 and "Traceback" not in said, said
    assert len(sentences) == 1 and all(word in sentences[0] for word in words), said
    return said


def goes_on(run):
    """The last checkpoint is whole, and the run is resumed from there."""
    before = TrainingState.read(run / "checkpoint.npz").epochs
    assert before > 0
    process = start("train", "--resume", run)
    wait_for(lambda: TrainingState.read(run / "checkpoint.npz").epochs > before, process)
    process.kill()
    process.communicate()


def test_a_full_disk(disk):
    process = training(disk / "run")
    fill(disk)
    said = one_sentence(process, "cannot write", "No space left on device")
    assert f"resume it with: edp-mx train --resume {disk / 'run'}\n" in said
    (disk / "ballast").unlink()
    goes_on(disk / "run")


def test_no_more_memory(tmp_path):
    # The test part is read at once, at the end, and needs more than all before.
    parts = "data.split={train: 0.02, validation: 0.02, test: 0.96}"
    large = ["data.size=20000", parts, "training.evaluation_batch_size=20000"]
    run = tmp_path / "run"
    process = start("train", QUICKSTART, "--run", run, "--set", *TINY, *large, "training.epochs=8")
    wait_for((run / "checkpoint.npz").exists, process)
    limited = psutil.Process(process.pid)
    room = limited.memory_info().vms + 2**25
    limited.rlimit(psutil.RLIMIT_AS, (room, room))
    one_sentence(process, "not enough memory", "evaluation_batch_size")
    assert TrainingState.read(run / "checkpoint.npz").epochs == 8
    done = edp_mx("train", "--resume", run)  # with all memory
    assert done.returncode == 0 and (run / "results.json").exists(), done.stderr


def test_a_folder_that_can_no_longer_be_written(tmp_path):
    run = tmp_path / "run"
    process = training(run)
    frozen = ["chattr", "-R", "+i", str(run)]
    tried = subprocess.run(frozen, capture_output=True, text=True, check=False)
    try:
        if tried.returncode:
            process.kill()
            process.communicate()
            pytest.skip(f"no file can be made immutable: {tried.stderr.strip()[:100]}")
        one_sentence(process, "cannot write", "Operation not permitted")
    finally:
        subprocess.run(["chattr", "-R", "-i", str(run)], capture_output=True, check=False)
    goes_on(run)
