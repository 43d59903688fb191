"""The commands that README and docs show."""

import re
import shlex
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LAUNCHERS = {
    "launch/train.sh": "train",
    "launch/pretrain.sh": "pretrain",
    "launch/audit.sh": "audit",
    "launch/sweep.sh": "sweep",
    "launch/table1.sh": "table1",
    "launch/table2.sh": "table2",
}


def blocks(page):
    """The fenced bash blocks of a page, in order."""
    return re.findall(r"^```bash\n(.*?)^```", page.read_text(), re.M | re.S)


def shown_commands():
    """(page, arguments of edp-mx) of each command in a block, and of each whole one in a line."""
    for page in PAGES:
        text = page.read_text()
        inline = re.findall(r"`((?:NP=\S+ )?(?:edp-mx|launch/)[^`]*)`", text)
        lines = "".join(blocks(page)).replace("\\\n", " ").splitlines()
        complete = [line for line in inline if re.search(r" --\w|[/.]\w", line)]  # not just a name
        for command in (*lines, *complete):
            words = [word for word in shlex.split(command, comments=True) if "=" not in word[:6]]
            is_whole = not re.search(r"<|…|\bRUN\b|\bCOMMAND\b|--help", command)
            if words and is_whole and (words[0] == "edp-mx" or words[0] in LAUNCHERS):
                first = [LAUNCHERS[words[0]]] if words[0] in LAUNCHERS else []
                if len(words) > 1:
                    yield page.name, (*first, *words[1:])
