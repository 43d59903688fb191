"""Set-up: stages that survive an interruption, and sentences for what is missing."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
needs_environment = pytest.mark.skipif(
    not Path(os.environ.get("EDP_MX_VENV") or ROOT / ".venv").is_dir(),
    reason="there is no .venv yet: launch/setup.sh would install everything",
)


@pytest.fixture
def bootstrap():
    spec = importlib.util.spec_from_file_location("bootstrap", ROOT / "launch" / "bootstrap.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def fake_stages(bootstrap, log, fail=""):
    """Three quick stages that write their name into `log`; one may fail."""

    def stages(venv, gpu):
        make = f"mkdir -p {venv}/bin; ln -sf {sys.executable} {venv}/bin/python; "
        return [
            bootstrap.Stage(name, [name, str(gpu)], ["sh", "-c", f"{make if i == 0 else ''}"
                            f"echo {name} >> {log}; test {name} != '{fail}'"])
            for i, name in enumerate(("first", "second", "third"))]  # fmt: skip

    return stages


def ran(log):
    return log.read_text().split() if log.exists() else []


def test_a_second_call_does_nothing_and_a_broken_one_goes_on(bootstrap, tmp_path, monkeypatch):
    log, venv = tmp_path / "log", tmp_path / "venv"
    monkeypatch.setattr(bootstrap, "stages", fake_stages(bootstrap, log, fail="second"))
    with pytest.raises(bootstrap.SetupError, match="'second' failed"):
        bootstrap.install(venv, gpu=False)
    assert ran(log) == ["first", "second"]
    monkeypatch.setattr(bootstrap, "stages", fake_stages(bootstrap, log))
    assert bootstrap.install(venv, gpu=False)
    assert ran(log)[2:] == ["second", "third"]
    assert not bootstrap.install(venv, gpu=False)
    assert len(ran(log)) == 4


def test_without_an_optional_stage_it_goes_on_and_says_so(bootstrap, tmp_path, monkeypatch, capsys):
    log = tmp_path / "log"
    fake = fake_stages(bootstrap, log, fail="second")

    def optional(venv, gpu):
        return [stage._replace(without="no encoder") for stage in fake(venv, gpu)]

    monkeypatch.setattr(bootstrap, "stages", optional)
    assert bootstrap.install(tmp_path / "venv", gpu=False)
    assert ran(log) == ["first", "second", "third"]
    assert "2/3 second … left out: no encoder" in capsys.readouterr().out
    assert not bootstrap.install(tmp_path / "venv", gpu=False)


def test_a_lost_interpreter_starts_from_the_beginning(bootstrap, tmp_path, monkeypatch):
    log, venv = tmp_path / "log", tmp_path / "venv"
    monkeypatch.setattr(bootstrap, "stages", fake_stages(bootstrap, log))
    bootstrap.install(venv, gpu=False)
    (venv / "bin" / "python").unlink()
    (venv / "bin" / "python").symlink_to(tmp_path / "gone")
    assert bootstrap.install(venv, gpu=False)
    assert ran(log) == ["first", "second", "third"] * 2


def test_what_was_not_made_here_is_not_emptied(bootstrap, tmp_path, monkeypatch):
    log, mine = tmp_path / "log", tmp_path / "mine"
    monkeypatch.setattr(bootstrap, "stages", fake_stages(bootstrap, log))
    mine.mkdir()
    (mine / "letters.txt").write_text("dear")
    with pytest.raises(bootstrap.SetupError, match="not made here"):
        bootstrap.install(mine, gpu=False)
    (tmp_path / "link").symlink_to(mine)
    with pytest.raises(bootstrap.SetupError, match="is a link"):
        bootstrap.install(tmp_path / "link", gpu=False)
    assert not log.exists() and (mine / "letters.txt").read_text() == "dear"
    (tmp_path / "empty").mkdir()
    assert bootstrap.install(tmp_path / "empty", gpu=False)


def test_another_choice_is_installed_anew(bootstrap, tmp_path, monkeypatch):
    log, venv = tmp_path / "log", tmp_path / "venv"
    monkeypatch.setattr(bootstrap, "stages", fake_stages(bootstrap, log))
    monkeypatch.setattr(bootstrap, "check_system", lambda gpu: None)
    bootstrap.install(venv, gpu=False)
    assert bootstrap.install(venv, gpu=True)


def test_stamps_do_not_depend_on_the_shell(bootstrap, tmp_path, monkeypatch):
    """PATH, the virtual environment's own Python and a CMake that came or went change nothing."""
    stamps = [stage.stamp() for stage in bootstrap.stages(tmp_path, gpu=False)]
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(bootstrap, "needs_cmake_wheel", lambda: True)
    monkeypatch.setattr(bootstrap, "base_python", lambda: "/elsewhere/python")
    assert stamps == [stage.stamp() for stage in bootstrap.stages(tmp_path, gpu=False)]


def test_a_missing_compiler_is_said(bootstrap, monkeypatch):
    monkeypatch.setattr(bootstrap.shutil, "which", lambda name: None)
    with pytest.raises(bootstrap.SetupError, match=r"needs g\+\+.*apt-get install"):
        bootstrap.check_system(gpu=False)


@pytest.mark.parametrize("version, needed", [
    ("cmake version 3.25.1", False), ("cmake version 4.0.2", True), ("cmake version 3.5", True),
    ("nonsense", True)])  # fmt: skip
def test_only_cmake_3_will_do(bootstrap, tmp_path, monkeypatch, version, needed):
    cmake = tmp_path / "cmake"
    cmake.write_text(f"#!/bin/sh\necho '{version}'\n")
    cmake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert bootstrap.needs_cmake_wheel() is needed


def test_without_a_usable_python_the_sentence_says_how_to_get_one():
    result = subprocess.run(
        [ROOT / "launch" / "setup.sh"], env={**os.environ, "PYTHON": "no-such-python"},
        capture_output=True, text=True)  # fmt: skip
    assert result.returncode == 2
    assert "needs Python 3.8 to 3.11" in result.stderr and "apt-get install" in result.stderr


@needs_environment
def test_where_all_is_in_place_it_says_so_and_does_nothing():
    result = subprocess.run([ROOT / "launch" / "setup.sh"], capture_output=True, text=True)
    assert result.returncode == 0
    (line,) = result.stdout.splitlines()  # each stage that runs has one of its own
    assert line.startswith("setup: all in place")


@needs_environment
@pytest.mark.parametrize("environment, message", [
    ({"NP": "two"}, "NP=two: the number of workers"),
    ({"NP": "0"}, "NP=0: the number of workers"),
    ({"NP": "2", "HOSTS": "host1"}, "write it as host1:slots"),
    ({"NP": "7"}, "training.batch_size: 64 is not a multiple of 7 (7 workers)"),
])  # fmt: skip
def test_the_launcher_refuses_what_cannot_run(environment, message):
    result = subprocess.run(
        [ROOT / "launch" / "train.sh", ROOT / "configs" / "quickstart.yaml"],
        env={**os.environ, **environment}, capture_output=True, text=True)  # fmt: skip
    assert result.returncode == 2 and message in result.stderr
    assert "Traceback" not in result.stderr
