"""launch/Dockerfile: its commands, carried out in a virtual environment without Docker."""

import json
import os
import re
import shutil
import subprocess
import sys
import time

import pytest
from support.documentation import ROOT
from support.drawn_runs import LINES, differences, drawn_run, predicted
from support.serving import send

FILE = ROOT / "launch" / "Dockerfile"
BASE = "FROM python:3.11-slim"


def instructions():
    """(name, the rest) of each instruction."""
    lines = [line for line in FILE.read_text().splitlines() if line and line[0] != "#"]
    return [tuple(line.split(" ", 1)) for line in lines]


def the(name):
    (found,) = [rest for each, rest in instructions() if each == name]
    return found


def test_every_package_is_one_of_ours_in_a_version_of_ours():
    """But for numpy, which MXNet alone ties to an old version."""
    known = (ROOT / "setup.py").read_text()
    lines = (ROOT / "launch" / "serve.txt").read_text().splitlines()
    for line in [line for line in lines if not line.startswith("#")]:
        assert f'"{line}"' in known or line == "numpy", line


def test_it_is_not_root_and_asks_for_its_own_health():
    names = [name for name, _ in instructions()]
    assert " ".join(instructions()[0]) == BASE
    assert int(the("USER")) > 0 and names.index("USER") < names.index("ENTRYPOINT")
    (port,) = re.findall(r'"--port", "(\d+)"', the("ENTRYPOINT"))
    assert the("EXPOSE") == port and f":{port}/health" in the("HEALTHCHECK")


class Container:
    """A folder in place of the file system, and a virtual environment in place of the image."""

    def __init__(self, folder, context):
        self.root, self.context = folder / "root", context
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
        self.variables = {}
        self.environment = {"PATH": f"{folder / 'venv' / 'bin'}:{os.environ['PATH']}"}

    def inside(self, text):
        """A text with its paths below the folder, and its port another one."""
        text = text.replace("${MODEL}", self.variables.get("MODEL", "")).replace("8080", "8093")
        return re.sub(r"(?<![\w.:/])/(app|model)\b", rf"{self.root}/\1", text)

    def carry_out(self, name, rest):
        rest = self.inside(rest)
        if name == "ENV":
            self.environment.update(pair.split("=") for pair in rest.split())
        elif name == "ARG":
            self.variables.update([rest.split("=")])
        elif name == "COPY":
            *_, source, target = rest.split()
            assert target.startswith(str(self.root))
            ignored = (ROOT / "launch" / "Dockerfile.dockerignore").read_text()
            kept = re.findall(r"^!(.+)$", ignored, re.M)
            assert any(source == each or source.startswith(f"{each}/") for each in kept)
            left_out = shutil.ignore_patterns(*re.findall(r"^\*\*/(.+)$", ignored, re.M))
            if (self.context / source).is_dir():
                shutil.copytree(self.context / source, target, ignore=left_out)
            else:
                os.makedirs(os.path.dirname(target), exist_ok=True)
                shutil.copy(self.context / source, target)
        elif name == "RUN":
            subprocess.run(rest, shell=True, check=True, env=self.environment)


@pytest.mark.slow
def test_its_commands_serve_an_exported_model(tmp_path):
    """With the packages that it names, from the package index, in the order of its lines."""
    pytest.importorskip("onnx", reason="pip install 'edp_mx[onnx]'")
    from edp_mx.runs.exported.onnx_folder import write_onnx

    trained = drawn_run(tmp_path / "run", "bert", "data.tokenizer=punctuation")
    context = tmp_path / "clone"
    for name in ("edp_mx", "launch"):
        shutil.copytree(ROOT / name, context / name)
    write_onnx(trained, context / "exported" / "mine")
    container = Container(tmp_path, context)
    for name, rest in instructions():
        container.carry_out(name, rest)
    missing = subprocess.run(["python", "-c", "import mxnet"], env=container.environment,
                             capture_output=True, check=False)  # fmt: skip
    assert b"ModuleNotFoundError" in missing.stderr
    command = json.loads(container.inside(the("ENTRYPOINT")))
    check = json.loads(container.inside(the("HEALTHCHECK").partition("CMD ")[2]))
    served = subprocess.Popen([*command, "--full-confidences"], env=container.environment, cwd="/")
    try:
        for _ in range(60):
            time.sleep(1)
            healthy = subprocess.run(check, env=container.environment, capture_output=True)
            if healthy.returncode == 0:
                break
        assert healthy.returncode == 0, healthy.stderr
        body = json.dumps({"utterances": [{"text": line} for line in LINES[:5]]})
        status, _, found = send(8093, body=body)
    finally:
        served.terminate()
        served.wait(30)
    assert status == 200
    assert differences(predicted(trained, LINES[:5]), found["predictions"]) < 1e-4
    assert subprocess.run(check, env=container.environment, capture_output=True).returncode != 0
