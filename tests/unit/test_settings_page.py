"""docs/settings.md: as the code makes it, and no key is missing."""

import importlib.util
import re
from pathlib import Path

import pytest
import yaml

from edp_mx.config import ExperimentConfig, dump_config
from edp_mx.models.registry import FAMILIES

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
ROWS = {
    key: cells
    for key, *cells in (
        re.split(r" (?<!\\)\| ", line.strip("| "))
        for line in PAGE.splitlines()
        if line[:3] == "| `"
    )
}


def leaves(tree, prefix=""):
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield f"`{prefix}{key}`"


def test_it_is_up_to_date():
    spec = importlib.util.spec_from_file_location("made", ROOT / "docs" / "make_settings.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    assert made.make_page() == PAGE, "run: .venv/bin/python docs/make_settings.py"


@pytest.mark.parametrize(
    "config",
    [*(ExperimentConfig(model=family.config()) for family in FAMILIES.values())],
    ids=[*FAMILIES],
)
def test_each_setting_that_a_run_writes_down_is_on_the_page(config):
    written = set(leaves(yaml.safe_load(dump_config(config))))
    assert len(written) > 30 and written <= set(ROWS), written - set(ROWS)


def test_a_row_has_type_default_bounds_and_meaning():
    assert ROWS["`privacy.delta`"] == [
        "number", "`null`", "at least 1e-300 and below 1", "δ; the default is 1/(2n)."
    ]  # fmt: skip
    assert ROWS["`data.path`"][:2] == ["path", "`null`"]
    assert ROWS["`model.is_embedding_trainable`"][:2] == ["true or false", "`true`"]
    assert all(len(cells) == 4 and cells[3] for cells in ROWS.values())
