"""The page on one's own corpus, and those that go on from it, executed command by command."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.documentation import ROOT, blocks

from edp_mx.data.synthetic import make_utterances

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
SMALL = """
model: {hidden_size: 16, character_filters: 4, num_layers: 1}
data: {embeddings: {dimension: 16}}
"""


@pytest.fixture(scope="module")
def corpus_of_ones_own(tmp_path_factory):
    """A folder with the page's three files, and the shipped configurations with a small CLC."""
    folder = tmp_path_factory.mktemp("own")
    utterances = list(make_utterances("communication", size=1200, seed=1))
    rows = [
        {"tokens": list(u.tokens), "slots": list(u.slots), "intent": u.intent} for u in utterances
    ]
    (folder / "mine.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = sorted({word for u in utterances for word in u.tokens})
    (folder / "words.txt").write_text("\n".join(words) + "\n")
    slots = sorted({tag[2:] for u in utterances for tag in u.slots if tag != "O"})
    labels = {"slots": slots, "intents": sorted({u.intent for u in utterances})}
    (folder / "labels.json").write_text(json.dumps(labels))
    shutil.copytree(ROOT / "configs", folder / "configs")
    clc = folder / "configs" / "model" / "clc.yaml"
    clc.rename(clc.with_name("full_clc.yaml"))
    clc.write_text("include: [full_clc.yaml]\n" + SMALL)
    page = (ROOT / "docs" / "own-corpus.md").read_text()
    (folder / "mine.yaml").write_text(page.split("```yaml\n")[1].split("```")[0])
    return folder


def execute(script, folder):
    """Runs the shell commands of a page as they stand, in a folder beside the checkout."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    result = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script.replace("launch/", f"{ROOT}/launch/")],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": path, "EDP_MX_VENV": str(Path(sys.prefix))},
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_the_page_on_ones_own_corpus(corpus_of_ones_own):
    said = execute("".join(blocks(ROOT / "docs" / "own-corpus.md")), corpus_of_ones_own)
    privacy = json.loads((corpus_of_ones_own / "runs" / "mine" / "privacy.json").read_text())
    assert 7.9 < privacy["holds"]["epsilon"] <= 8
    assert "1200" in said or "1,200" in said  # describe counts them
    assert "call my parents at 0123\n  intent  " in said


def test_the_readme_shows_the_same_commands():
    page = "".join(blocks(ROOT / "docs" / "own-corpus.md")).replace("\\\n ", "")
    section = (ROOT / "README.md").read_text().split("## Train on your own corpus")[1]
    block = section.split("```bash\n")[1].split("```")[0].replace("\\\n ", "")
    for command in block.splitlines():
        assert command.rstrip('"').rstrip() in page, command


def test_the_page_on_attacks_goes_on_with_that_run(corpus_of_ones_own):
    if not (corpus_of_ones_own / "runs" / "mine").exists():
        pytest.skip("the run of the page on one's own corpus is not there")
    first = blocks(ROOT / "docs" / "attacks.md")[0]
    assert "AUC" in execute(first, corpus_of_ones_own)


def test_the_page_on_audits(corpus_of_ones_own):
    commands = blocks(ROOT / "docs" / "audits.md")[0].splitlines()
    for command in commands:
        if "one-run" not in command:  # minutes long: tests/integration/test_audit_one_run.py
            execute(command, corpus_of_ones_own)
