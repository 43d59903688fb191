"""A command imports its own modules, and not those of the other commands."""

import ast
from pathlib import Path

import pytest
from support.cli import from_a_shell
from support.made_ledgers import plan_with, run_with, shuffled_line

from edp_mx import cli
from edp_mx.cli import SUBCOMMANDS

IMPORTED = """
import sys
from edp_mx import cli
try:
    cli.main(sys.argv[1:])
except SystemExit as ended:
    assert ended.code == 0
print(*(name for name in sys.modules if name.split(".")[0] == "edp_mx"), file=sys.stderr)
"""


def imported(*words):
    """The modules of edp_mx that a command has loaded when it ends well."""
    ended = from_a_shell(*words, program=("-c", IMPORTED))
    assert ended.returncode == 0, ended.stderr
    return set(ended.stderr.splitlines()[-1].split())


def test_no_command_imports_another():
    """Nor does a module that they share."""
    for path in Path(cli.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("edp_mx.cli"):
                named = {node.module.rpartition(".")[2], *(alias.name for alias in node.names)}
                assert not named & SUBCOMMANDS.keys(), f"{path}:{node.lineno}"


@pytest.mark.parametrize("words", [(), ("account",)])
def test_a_command_line_loads_what_it_asks_for(words):
    found = {name.split(".")[2] for name in imported(*words, "--help") if "edp_mx.cli." in name}
    assert found & SUBCOMMANDS.keys() == set(words)


def test_account_imports_few_modules(tmp_path):
    """45 for a plan and 61 for a run when this was written."""
    run = run_with(tmp_path / "run", plan_with(), [shuffled_line(epoch) for epoch in range(4)])
    for words in (("--noise-multiplier", "0.5", "--epochs", "10", "--delta", "5e-4"), (run,)):
        found = imported("account", *words)
        assert len(found) <= 62, sorted(found)
