"""What is written as YAML is read again as it was."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from edp_mx.config import dump_config, load_config
from edp_mx.runtime.yaml_tree import dump, load, quoted, read_mapping

ODD = [
    "1e3", "-.5E+9", "1_0e2", "0x1f", "1:30", "yes", "~", "null", "=", "<<", "2001-01-01", "a: b",
    "a #b", "- a", "a\u0085b", "\u0085", "\u2028x", "\ufeff", "a\u00a0", " a ", "\x00\x07\x7f",
    "\n", "a\r\nb", "😀", "\udc80", "'", '"', "\\", "%a", "@", "`", "!x", "&a", "*a", "x" * 300,
    "x " * 99, "",
]  # fmt: skip
TEXTS = st.text() | st.from_regex(r"[-+]?[0-9_.:]*[eExo]?[-+]?[0-9_]+", fullmatch=True)


def holds(text):
    tree = {"a": text, "b": {"c": [text, 1, 1e-6, None, True]}}
    assert load(dump(tree)) == tree
    assert load(f"[{quoted(text)}]") == [text] and len(quoted(text).splitlines()) == 1


@pytest.mark.parametrize("text", ODD)
def test_an_odd_text_survives(text):
    holds(text)


@given(TEXTS)
@example("1e3")
def test_any_text_survives(text):
    holds(text)


@pytest.mark.parametrize("text", ODD)
def test_a_setting_survives_the_configuration_of_a_run(text, tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text("training: {epochs: 1}\n")
    config = load_config(path, [f"data.corpus={quoted(text)}", "data.path=/a"])
    path.write_text(dump_config(config))
    assert load_config(path) == config and read_mapping(path)[0]["data"]["corpus"] == text
