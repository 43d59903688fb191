"""What the README names exists."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
SYMBOLS = re.findall(r"`(edp_mx/[\w/]+\.py):([\w.]+)`", README)


def definitions(tree, prefix=""):
    for node in tree.body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            yield prefix + node.name
        if isinstance(node, ast.ClassDef):
            yield from definitions(node, f"{prefix}{node.name}.")


@pytest.mark.parametrize("file, symbol", SYMBOLS)
def test_each_symbol_of_the_table_exists(file, symbol):
    assert symbol in set(definitions(ast.parse((ROOT / file).read_text())))


def test_the_table_names_the_whole_algorithm():
    for line in ("Scale", "Clip", "Rescale", "Add scaled Gaussian noise", "Aggregate", "Set noise"):
        assert f"{line}" in README
    assert len(SYMBOLS) >= 15


@pytest.mark.parametrize("script", re.findall(r"launch/\w+\.sh", README))
def test_each_script_exists_and_can_be_run(script):
    assert (ROOT / script).stat().st_mode & 0o111


TEXTS = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("results/*.md"),
         *ROOT.glob("launch/*.sh"), *ROOT.glob("edp_mx/cli/*.py")]  # fmt: skip


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_each_configuration_that_is_named_exists(path):
    for name in re.findall(r"\bconfigs/[\w/]+\.yaml", path.read_text()):
        assert (ROOT / name).is_file(), name


@pytest.mark.parametrize(
    "path", sorted(ROOT.glob("launch/*.sh")), ids=lambda path: path.name)  # fmt: skip
def test_scripts_are_short(path):
    assert len(path.read_text().splitlines()) <= 40
