"""Samplers, units and ways of clipping answer by themselves: no module compares their names."""

import ast
from pathlib import Path

import edp_mx
from edp_mx.dp.accounting.clippings import CLIPPINGS
from edp_mx.dp.accounting.samplers import SAMPLERS
from edp_mx.dp.accounting.units import UNITS

PACKAGE = Path(edp_mx.__file__).parent
NAMES = {*SAMPLERS, *UNITS, *CLIPPINGS}
# Where a name is another thing's: a key of a corpus' records, an option, a column of records.
OTHERS = {"dp/accounting/units.py", "cli/init.py", "dp/planning.py"}


def compared(tree):
    """(name, line) of each text that is compared with something."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            for side in (node.left, *node.comparators):
                for part in ast.walk(side):
                    if isinstance(part, ast.Constant) and part.value in NAMES:
                        yield part.value, node.lineno


def test_no_name_is_compared():
    found = [
        f"{path.relative_to(PACKAGE)}:{line} compares {name}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if str(path.relative_to(PACKAGE)) not in OTHERS and path.parent.name != "readers"
        for name, line in compared(ast.parse(path.read_text()))
    ]
    assert not found
