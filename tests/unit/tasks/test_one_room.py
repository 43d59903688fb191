"""How much of the package knows a task by name, outside of its own room."""

import re

import pytest
from support.documentation import ROOT

from edp_mx.tasks.registry import TASKS

MOST = 10  # package files that a new task may touch


@pytest.mark.parametrize("name", TASKS)
def test_few_files_name_a_task_or_import_its_room(name):
    """Of the masked LM, files about a BERT's masked-LM head are none about the task."""
    room = ROOT / "edp_mx" / "tasks" / name
    named = re.compile(rf"tasks\.{name}|task: {name}|[\"'`]{name}[\"'`]")
    found = [
        path
        for path in (ROOT / "edp_mx").rglob("*")
        if path.suffix in (".py", ".jinja") and room not in path.parents
        if named.search(path.read_text(encoding="utf-8"))
    ]
    assert ROOT / "edp_mx" / "tasks" / "registry.py" in found
    assert len(found) <= MOST, found
