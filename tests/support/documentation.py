"""The commands that README and docs show."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from support.jsonl import write_jsonl

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LAUNCHERS = {
    "launch/train.sh": "train",
    "launch/pretrain.sh": "train",
    "launch/audit.sh": "audit",
    "launch/sweep.sh": "sweep",
    "launch/table1.sh": "experiments.table1",
    "launch/table2.sh": "experiments.table2",
}


def blocks(page, language="bash"):
    """The fenced blocks of a page in one language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.M | re.S)


def shown_commands():
    """(page, words) of each command in a block, and of each whole one in a line.

    The first word is a subcommand of edp-mx, or a module of the experiments.
    """
    for page in PAGES:
        text = page.read_text()
        inline = re.findall(r"`((?:NP=\S+ )?(?:edp-mx|launch/|python -m experiments)[^`]*)`", text)
        lines = "".join(blocks(page)).replace("\\\n", " ").splitlines()
        complete = [line for line in inline if re.search(r" --\w|[/.]\w", line)]  # not just a name
        for command in (*lines, *complete):
            words = [word for word in shlex.split(command, comments=True) if "=" not in word[:6]]
            is_whole = not re.search(r"<|…|\bRUN\b|\bCOMMAND\b|--help", command)
            if not words or not is_whole:
                continue
            if words[0] in LAUNCHERS:
                words = ["edp-mx", LAUNCHERS[words[0]], *words[1:]]
            elif words[:2] == ["python", "-m"] and words[2].startswith("experiments."):
                words = ["edp-mx", *words[2:]]
            if words[0] == "edp-mx" and len(words) > 1:
                yield page.name, tuple(words[1:])


def folder_of_ones_own(folder, utterances):
    """A clone's folder as the pages take it: `mine.jsonl`, and small recipes."""
    write_jsonl(folder / "mine.jsonl", utterances)
    shutil.copytree(ROOT / "configs", folder / "configs")
    for name in ("model/clc.yaml", "recipe/clc.yaml", "warm_start/clc.yaml"):
        path = folder / "configs" / name
        text = path.read_text().replace("character_filters: 30", "character_filters: 4")
        text = re.sub(r"hidden_size: \d+", "hidden_size: 16", text)
        text = re.sub(r"num_layers: \d+", "num_layers: 1", text)
        text = re.sub(r"epochs: 3$", "epochs: 1", text, flags=re.M)
        text = text.replace("corpus: merged", "corpus: merged\n  size: 3000")
        path.write_text(re.sub(r"\{dimension: \d+", "{dimension: 16", text))
    return folder


def execute(script, folder):
    """Runs the shell commands of a page as they stand, in a folder beside the checkout."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    result = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script.replace("launch/", f"{ROOT}/launch/")],
        cwd=folder,
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "PATH": path,
            "PYTHONPATH": os.pathsep.join(  # for the experiments
                filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])
            ),
            "EDP_MX_VENV": str(Path(sys.prefix)),
        },
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout
