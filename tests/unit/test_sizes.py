"""No module is longer than 280 lines, and no function longer than 40 below its docstring."""

import ast

from support.documentation import ROOT

MODULES = sorted([*(ROOT / "edp_mx").rglob("*.py"), *(ROOT / "experiments").rglob("*.py")])
MOST_OF_A_MODULE, MOST_OF_A_FUNCTION = 280, 40


def lengths(tree):
    """(name, lines of the body without its docstring) of each function."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            body = node.body[1:] if ast.get_docstring(node) is not None else node.body
            yield node.name, node.end_lineno - body[0].lineno + 1 if body else 0


def test_modules_and_functions_are_read_at_a_glance():
    too_long = {}
    for path in MODULES:
        text, name = path.read_text(), path.relative_to(ROOT)
        too_long[f"{name}"] = text.count("\n") - MOST_OF_A_MODULE
        for function, size in lengths(ast.parse(text)):
            too_long[f"{name}:{function}"] = size - MOST_OF_A_FUNCTION
    assert not {place: more for place, more in too_long.items() if more > 0}


def test_lengths_are_those_of_bodies():
    source = 'def f(\n    a,\n):\n    """One.\n\n    Two.\n    """\n    a += 1\n    return a\n'
    assert list(lengths(ast.parse(source))) == [("f", 2)]
