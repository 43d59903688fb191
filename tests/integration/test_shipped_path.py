"""From a corpus as published to answers without MXNet: init, train, statement, export, predict."""

import json
import os
import re
import subprocess
import sys
import time

import pytest
from support.commands import read
from support.documentation import ROOT, execute, folder_of_ones_own
from support.drawn_runs import confidence_of, differences

from edp_mx.runs.trained_run import load_run

pytest.importorskip("onnx", reason="pip install 'edp_mx[onnx]'")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(5400)]
CORPORA = {
    "clinc150": ("clinc150/data_full.json.gz", "--columns slots=none"),
    "banking77": ("banking77", "--columns intent=category slots=none"),
    "snips": ("snips", ""),
}
ASKED = 500  # utterances of the test part
MINUTES = 10  # of wall time, from nothing to a trained model


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """The variables of an environment with what launch/serve.txt names: no MXNet."""
    folder = tmp_path_factory.mktemp("bare")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    variables = {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    install = ["pip", "install", "-q", "-r", ROOT / "launch" / "serve.txt"]
    subprocess.run(install, check=True, env={"PATH": variables["PATH"]})
    found = subprocess.run(["python", "-c", "import mxnet"], env=variables, capture_output=True)
    assert b"No module named 'mxnet'" in found.stderr
    return variables


@pytest.mark.parametrize("name", CORPORA)
def test_a_published_corpus_becomes_a_private_model_that_leaves(name, corpora, bare, tmp_path):
    folder, (file, options) = folder_of_ones_own(tmp_path, []), CORPORA[name]
    times = {}

    def timed(step, command):
        began = time.monotonic()
        said = execute(command, folder)
        times[step] = time.monotonic() - began
        return said

    timed("fetch", "edp-mx checkpoint fetch minilm")
    timed("init", f"edp-mx init {corpora / file} {options} --epsilon 8 --labels-are-public "
          "--start-from checkpoints/minilm --out own.yaml")  # fmt: skip
    timed("train", "edp-mx train own.yaml --run runs/own")
    assert sum(times.values()) < MINUTES * 60, times
    timed("statement", "edp-mx statement runs/own")
    timed("export", "edp-mx export runs/own --to onnx")
    run = folder / "runs" / "own"
    stated = re.search(r"^epsilon = (\S+) at delta = ", (run / "statement.md").read_text(), re.M)[1]
    epsilon = read(run, "privacy")["holds"]["epsilon"]
    assert 7.9 < epsilon <= 8 and float(stated) == pytest.approx(epsilon, rel=1e-4)
    results = read(run, "results")
    wrong, constant = (scores["ser"] if "ser" in scores else 1 - scores["accuracy"]
                       for scores in (results["test"], results["baseline"]))  # fmt: skip
    assert wrong < constant / 2
    asked = load_run(run).part("test")[:ASKED]
    (folder / "asked.jsonl").write_text(
        "".join(json.dumps({"tokens": utterance.tokens}) + "\n" for utterance in asked)
    )
    expected = timed("predict", "edp-mx predict runs/own - < asked.jsonl").splitlines()
    began = time.monotonic()
    with (folder / "asked.jsonl").open() as lines:
        found = subprocess.run(["python", "-m", "edp_mx", "predict", "exported/own", "-"],
                               stdin=lines, capture_output=True, text=True, check=True,
                               cwd=folder, env=bare).stdout.splitlines()  # fmt: skip
    times["predict, ONNX Runtime"] = time.monotonic() - began
    answers = [[*map(json.loads, side)] for side in (expected, found)]
    assert len(answers[0]) == ASKED and differences(*answers) < 1e-4
    assert len({round(confidence_of(answer), 3) for answer in answers[0]}) > 10
    print(name, {metric: round(value, 4) for metric, value in results["test"].items()
                 if isinstance(value, float)}, *(f"{key}: {value:.0f} s" for key, value in
                                                 times.items()), sep=" · ")  # fmt: skip
