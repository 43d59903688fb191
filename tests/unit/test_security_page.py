"""The threat model names tests that exist, and none of its lines is without one."""

import ast
import re

import pytest
from support.documentation import ROOT

PAGE = (ROOT / "docs" / "security.md").read_text()
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", PAGE)))
ROWS = [line for line in PAGE.splitlines() if re.match(r"\| (?!---)", line)]


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_each_named_test_exists(file, name):
    tree = ast.parse((ROOT / file).read_text())
    names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert any(each.startswith("test_") for each in names)
    assert not name or name in names


def test_each_line_has_a_test_or_says_that_nothing_is_protected():
    assert len(ROWS) > 20
    for row in ROWS:
        _, _, promise, held, _ = row.split("|")
        if held.strip() == "held by":
            continue
        assert "`tests/" in held or promise.strip().startswith("NOTHING"), row


def test_the_page_is_found():
    for page in ("docs/index.md", "docs/privacy.md", "mkdocs.yml"):
        assert "security.md" in (ROOT / page).read_text(), page
