"""A module imports only from the rooms below its own, and from no mxnet where that is promised."""

import ast
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "edp_mx"
ORDER = """
errors runtime accounting metrics data models privacy training config runs attacks reports serving
api cli
""".split()  # noqa: SIM905
NO_MXNET = ("errors", "accounting", "metrics", "data")
MXNET_IN_RUNTIME = {"arrays.py", "blas_in_use.py", "distributed.py"}


def imports(path):
    """(name, line) of all that a file imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module, node.lineno
        elif isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)


def modules():
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        if parts[0] not in ("__init__", "__main__"):
            yield path, parts[0]


def test_every_room_has_its_place():
    assert {room for _, room in modules()} == set(ORDER)


def test_imports_go_downwards():
    upwards = []
    for path, room in modules():
        for name, line in imports(path):
            if name.startswith("edp_mx."):
                other = name.split(".")[1]
                if ORDER.index(other) > ORDER.index(room):
                    upwards.append(f"{path.name}:{line} imports {name}")
    assert not upwards


def test_what_is_numpy_only_imports_no_mxnet_and_horovod_has_one_door():
    for path, room in modules():
        for name, line in imports(path):
            top = name.split(".")[0]
            is_free = room in NO_MXNET or (room == "runtime" and path.name not in MXNET_IN_RUNTIME)
            assert not (top == "mxnet" and is_free), f"{path}:{line}"
            if top == "horovod":
                doors = ("distributed.py", "launcher.py", "run_directory.py")
                assert path.name in doors, f"{path}:{line}"


def test_privacy_sees_neither_models_nor_data():
    for path, room in modules():
        if room == "privacy":
            for name, line in imports(path):
                assert not name.startswith(("edp_mx.models", "edp_mx.data")), f"{path}:{line}"


def test_mxnet_s_random_numbers_and_norms_stay_out_of_privacy():
    for path in (PACKAGE / "privacy").rglob("*.py"):
        text = path.read_text()
        for forbidden in ("mx.random", "nd.random", "multi_sum_sq", ".norm("):
            assert forbidden not in text, f"{path}: {forbidden}"
