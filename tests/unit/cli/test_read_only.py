"""Folders that cannot be written to: one sentence, before the work is done; reading goes on."""

import re
import shutil
import subprocess
import sys

import pytest
from support.commands import CALIBRATED, CONFIGS, NO_DECAY, TINY, edp_mx, from_a_shell

MOUNTED = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'
UNSHARE = shutil.which("unshare") or "/usr/bin/unshare"
LABELS = ["data", "labels", "health", "--size", 20, "--out"]
TABLE = ["experiments.table1", "--corpora", "health", "--models", "clc", "--methods", "sgd",
         "--configs", CONFIGS, "--set", "data.size=200", *TINY]  # fmt: skip


def why_not():
    """Why no file system can be mounted here, or "": it needs root, and a namespace for it."""
    try:
        subprocess.run([UNSHARE, "--mount", "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        return f"no mount namespace: {error}"
    return ""


needs_mounts = pytest.mark.skipif(why_not() != "", reason=why_not())


def beside(folder, *command, code):
    """Runs a command where a folder, which even root cannot write to, is mounted read-only."""
    module = () if command[0].startswith("experiments.") else ("edp_mx",)
    program = [sys.executable, "-m", *module, *command]
    return from_a_shell(UNSHARE, "--mount", "sh", "-c", MOUNTED, folder, *program, code=code)


@pytest.fixture
def shut(tmp_path):
    (tmp_path / "shut").mkdir()
    return tmp_path / "shut"


@needs_mounts
@pytest.mark.parametrize(
    "command",
    [
        (*LABELS, "{shut}/labels.json"),
        (*TABLE, "--runs", "{shut}/../runs", "--records", "{shut}/records"),
        pytest.param(
            (*TABLE, "--runs", "{shut}/../runs", "--records", "{shut}/../records", "--out",
             "{shut}/table.md"), marks=pytest.mark.slow),
        pytest.param(("train", CONFIGS / "quickstart.yaml", "--run", "{shut}/run"),
                     marks=pytest.mark.slow),
        pytest.param(("train", CONFIGS / "quickstart.yaml", "--runs", "{shut}"),
                     marks=pytest.mark.slow),
        pytest.param(("sweep", CONFIGS / "sweep" / "quickstart.yaml", "--out", "{shut}"),
                     marks=pytest.mark.slow),
    ],
    ids=lambda command: f"{command[0]} {command[-2]}",
)  # fmt: skip
def test_what_cannot_be_written_is_told_at_once(command, shut):
    """A table trained its cell first, and could then not keep the record."""
    said = beside(shut, *(str(word).format(shut=shut) for word in command), code=2).stderr
    *_, last = said.splitlines()
    assert re.match(rf"(edp-mx )?{command[0]}: cannot ", last) and str(shut) in last
    assert "Errno" not in last and "to be trained" not in said
    assert not list(shut.iterdir())


@needs_mounts
@pytest.mark.slow
def test_a_run_that_cannot_be_written_to_can_still_be_used(tmp_path):
    run = tmp_path / "run"
    settings = [*TINY, *NO_DECAY, "data.size=200", "training.epochs=1"]
    noise = "privacy.noise_multiplier=1"
    edp_mx("train", *CALIBRATED, "--run", run, "--set", *settings, noise)
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    for command in (["explain", run], ["account", run], ["compare", run], ["evaluate", run],
                    ["predict", run, "call mum"], ["runs", run], ["watch", run, "--once"],
                    ["report", run, "--out", tmp_path / "page.html"]):  # fmt: skip
        beside(run, *command, code=0)
    said = beside(run, "attack", run, code=2).stderr
    assert "cannot " in said and str(run) in said and "Errno" not in said
    assert before == {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
