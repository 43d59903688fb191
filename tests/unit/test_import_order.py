"""A module imports only from the rooms below its own, and from no mxnet where that is promised."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "edp_mx"
ORDER = """
errors runtime dp.accounting dp.sampling dp.privacy dp metrics data models tasks training config
runs attacks reports serving api cli
""".split()  # noqa: SIM905
NO_MXNET = """
errors dp.accounting dp.sampling metrics data config reports serving api cli
""".split()  # noqa: SIM905
NUMPY_ONLY = NO_MXNET[:5]
# What MXNet and Horovod do not document.
INTERNALS = re.compile(
    r"mxnet\.base|_fresh_grad|CachedOp|\._grad\b|_allreduce_grads|operator\._registry"
)
MXNET_IN_RUNTIME = {"arrays.py", "blas_in_use.py", "distributed.py"}


def imports(path):
    """(name, line) of all that a file imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module, node.lineno
        elif isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)


def room_of(parts):
    """The room of a dotted name below edp_mx; each part of the library is a room of its own."""
    own = ".".join(parts[:2])
    return own if own in ORDER else parts[0]


def modules():
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        if parts[0] not in ("__init__", "__main__"):
            yield path, room_of(parts)


def test_every_room_has_its_place():
    assert {room for _, room in modules()} == set(ORDER)


def test_imports_go_downwards():
    upwards = []
    for path, room in modules():
        for name, line in imports(path):
            if name.startswith("edp_mx."):
                other = room_of(name.split(".")[1:])
                if ORDER.index(other) > ORDER.index(room):
                    upwards.append(f"{path.name}:{line} imports {name}")
    assert not upwards


def test_nothing_that_is_installed_imports_the_experiments():
    """They lie beside configs/ and results/, which an installed package does not have."""
    for path in PACKAGE.rglob("*.py"):
        for name, line in imports(path):
            assert name.split(".")[0] != "experiments", f"{path}:{line}"
    assert 'find_packages(include=["edp_mx", "edp_mx.*"])' in (ROOT / "setup.py").read_text()


def test_what_is_numpy_only_imports_no_mxnet_and_horovod_has_one_door():
    for path, room in modules():
        for name, line in imports(path):
            top = name.split(".")[0]
            is_free = room in NO_MXNET or (room == "runtime" and path.name not in MXNET_IN_RUNTIME)
            assert not (top == "mxnet" and is_free), f"{path}:{line}"
            is_private = name.startswith(("edp_mx.dp.privacy", "edp_mx.dp.private"))  # has mxnet
            assert not (is_private and room in NUMPY_ONLY), f"{path}:{line}"
            if top == "horovod":
                doors = ("distributed.py", "launcher.py", "run_directory.py")
                assert path.name in doors, f"{path}:{line}"


def test_the_library_needs_nothing_else_of_the_package():
    for path, room in modules():
        if room.split(".")[0] == "dp":
            for name, line in imports(path):
                allowed = ("edp_mx.dp", "edp_mx.runtime", "edp_mx.errors")
                assert not name.startswith("edp_mx") or name.startswith(allowed), f"{path}:{line}"


def test_mxnet_s_random_numbers_and_norms_stay_out_of_privacy():
    for path in (PACKAGE / "dp" / "privacy").rglob("*.py"):
        text = path.read_text()
        for forbidden in ("mx.random", "nd.random", "multi_sum_sq", ".norm("):
            assert forbidden not in text, f"{path}: {forbidden}"


def test_the_page_on_mxnet_names_who_imports_it_and_who_relies_on_its_internals():
    page = (ROOT / "docs" / "stack.md").read_text()
    named = set(re.findall(r"`([\w/]+\.py)`", page.replace("tests/unit/", "")))
    found = {path.relative_to(PACKAGE).as_posix() for path, _ in modules()
             if INTERNALS.search(path.read_text())}  # fmt: skip
    assert named - {"test_import_order.py"} == found
    never = re.search(r"\n(`errors`.*?) never\s", page, re.S)[1]
    assert {name.replace("/", ".") for name in re.findall(r"`([\w/]+)`", never)} == {*NO_MXNET}
    assert len(MXNET_IN_RUNTIME) == 3 and "`runtime` does in three files" in page
