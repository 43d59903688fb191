"""What README and docs name exists, and the commands that they show are understood."""

import ast
import re
import subprocess
import sys

import pytest
from support.documentation import PAGES, ROOT, shown_commands

from edp_mx.cli import parse
from edp_mx.config import load_config
from experiments import command as experiments

TABLE = (ROOT / "docs" / "paper-to-code.md").read_text()
COMMANDS = sorted(set(shown_commands()))


def definitions(tree, prefix=""):
    for node in tree.body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            yield prefix + node.name
        if isinstance(node, ast.ClassDef):
            yield from definitions(node, f"{prefix}{node.name}.")


@pytest.mark.parametrize("file, symbol", re.findall(r"`(edp_mx/[\w/]+\.py):([\w.]+)`", TABLE))
def test_each_symbol_of_the_paper_to_code_table_exists(file, symbol):
    assert symbol in set(definitions(ast.parse((ROOT / file).read_text())))


@pytest.mark.parametrize(
    "page", [*PAGES, *(ROOT / name for name in ("CHANGELOG.md", "STYLE.md"))], ids=lambda p: p.name
)
def test_links_and_named_files_exist(page):
    text = page.read_text()
    links = re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", text)
    for link in links:
        is_made = link.startswith("api/")  # by docs/hooks.py
        assert is_made or link.startswith("https://") or (page.parent / link).exists(), link
    named = re.findall(
        r"(?<![\w/.])((?:configs|experiments|launch|benchmarks|tests)/[\w/]+\.\w+)", text
    )
    for path in named:
        assert (ROOT / path).exists(), path
    for path in re.findall(r"`((?:dp|data|models|runs|attacks)/[\w/]+\.py)", text):
        assert (ROOT / "edp_mx" / path).exists(), path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_lines_are_read_without_turning_the_head(page):
    """But for tables and the names of records, a line has at most 120 characters."""
    text = re.sub(r"<!--.*?-->", "", page.read_text(), flags=re.S)
    assert not [line for line in text.splitlines() if len(line) > 120 and line[0] != "|"]


@pytest.mark.parametrize("page, command", COMMANDS, ids=lambda value: str(value)[:60])
def test_each_command_is_understood_and_its_configuration_loads(page, command, monkeypatch):
    monkeypatch.chdir(ROOT)
    name, *words = command
    if name.startswith("experiments."):
        experiments.parse(name.split(".")[1], words)  # exits where it is not understood
        return
    arguments = parse(list(command))  # this too
    files = getattr(arguments, "configs", None) or []
    shipped = [path for path in files if str(path).startswith("configs/")]
    if files and shipped == files:
        load_config(files, arguments.overrides or ())


def test_what_the_documented_commands_write_is_kept_out_of_git(tmp_path):
    (tmp_path / ".gitignore").write_text((ROOT / ".gitignore").read_text())
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    written = set()
    for _, command in COMMANDS:
        for option, value in zip(command, command[1:]):
            is_ours = value.startswith(("docs/", "results/"))  # kept on purpose
            if option in ("--out", "--run", "--runs", "--into") and not is_ours:
                written.add(value)
    written |= {"mine.jsonl", "mine.csv", "merged/public.jsonl.gz", "text/mine.txt", "vectors.bin"}
    assert len(written) > 10
    for path in sorted(written):
        is_folder = "" if re.search(r"\.\w+$", path) else "/anything"
        ignored = subprocess.run(["git", "-C", tmp_path, "check-ignore", "-q", path + is_folder])
        assert ignored.returncode == 0, path


def test_commands_are_found():
    assert len({page for page, _ in COMMANDS}) >= 5 and len(COMMANDS) >= 25


def test_the_site_builds_without_a_broken_link(tmp_path):
    site = tmp_path / "site"
    result = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", site],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    assert "privatise" in (site / "api" / "dp" / "index.html").read_text()
