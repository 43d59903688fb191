"""The kernels of OpenBLAS: named where it takes old ones, and nowhere else."""

import json
import logging
import os
import subprocess
import sys

import pytest
from support.workers import run_workers

from edp_mx.runs.file_types import Environment
from edp_mx.runs.record import machine_of
from edp_mx.runs.run_directory import environment
from edp_mx.runtime import blas, blas_in_use
from edp_mx.runtime.blas import NAME, Processor, candidates, name_kernels
from edp_mx.runtime.blas_in_use import kernels_in_use
from edp_mx.runtime.structured import structure

AVX2 = frozenset(("avx", "avx2", "fma"))
AVX512 = AVX2 | {"avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"}
CPUINFO = """processor\t: 0
vendor_id\t: GenuineIntel
cpu family\t: 6
model\t\t: 207
model name\t: INTEL(R) XEON(R) PLATINUM 8581C
stepping\t: 2
flags\t\t: {flags}
bogomips\t: 4600.00

processor\t: 1
vendor_id\t: GenuineIntel
"""
TIMEOUT = "OPENBLAS_THREAD_TIMEOUT"
INTEL, AMD = "GenuineIntel", "AuthenticAMD"


@pytest.fixture
def intel_207(tmp_path):
    path = tmp_path / "cpuinfo"
    path.write_text(CPUINFO.format(flags=" ".join(sorted(AVX512))))
    return Processor.read(path)


@pytest.fixture
def unnamed(monkeypatch):
    """No kernels are named, and none that a test names stay so."""
    monkeypatch.setenv(NAME, "")
    del os.environ[NAME]


def old_kernels():
    return ["Prescott", "Prescott"]


def best_here():
    """The first kernels of an Intel 207 that a library takes on this machine, and those of each.

    OpenBLAS refuses SkylakeX on some processors with AVX-512, such as an AMD of family 25, and
    MXNet's has none; it then takes others.
    """
    code = f"""
import json
from {kernels_in_use.__module__} import *
print(json.dumps({{name: each["kernels"] for name, each in kernels_in_use().items()}}))
"""
    for name in ("SkylakeX", "Haswell"):
        asked = subprocess.run([sys.executable, "-c", code], env={**os.environ, NAME: name},
                               capture_output=True, text=True, check=True)  # fmt: skip
        taken = json.loads(asked.stdout.splitlines()[-1])
        if name in taken.values() and not blas.WITHOUT_AVX.intersection(taken.values()):
            return name, taken
    return pytest.skip("a processor without AVX2")


def test_an_intel_of_model_207_is_read_and_gets_the_kernels_of_its_flags(intel_207):
    assert intel_207 == (INTEL, "6 207 2", AVX512)
    assert candidates(intel_207, old_kernels()) == ["SkylakeX", "Haswell", "Sandybridge"]


@pytest.mark.parametrize(
    "vendor, flags, reported, named",
    [
        (INTEL, AVX2, ["Prescott"], ["Haswell", "Sandybridge"]),
        (INTEL, {"avx"}, ["Core2"], ["Sandybridge"]),
        (INTEL, AVX512 - {"avx512bw"}, ["Prescott"], ["Haswell", "Sandybridge"]),
        (AMD, AVX2, ["Barcelona"], ["Zen", "Haswell", "Sandybridge"]),
        (AMD, AVX512, ["Prescott", "Zen"], ["Zen", "SkylakeX", "Haswell", "Sandybridge"]),
        (INTEL, AVX512, ["Cooperlake", "Nehalem"], "Cooperlake SkylakeX Haswell Sandybridge"),
        # OpenBLAS knows the processor, or the processor has no better ones
        (INTEL, AVX512, ["SkylakeX", "Haswell"], []),
        (AMD, AVX2, ["Zen", "Zen"], []),
        (INTEL, AVX512, ["SomethingNew"], []),
        (INTEL, {"sse3"}, ["Prescott"], []),
        (INTEL, AVX2, [], []),
        ("", set(), ["Prescott"], []),
    ],
)
def test_kernels_are_named_only_where_old_ones_were_taken(vendor, flags, reported, named):
    named = named.split() if isinstance(named, str) else named
    assert candidates(Processor(vendor, "", frozenset(flags)), reported) == named


def test_the_libraries_say_before_they_are_used_what_they_compute_with_then(unnamed):
    code = (
        "import json, edp_mx.runtime.blas as b, edp_mx.runtime.blas_in_use as u; "
        "print(json.dumps([b._ask(b._libraries()), u.kernels_in_use()]))"
    )
    plain = {**os.environ, "EDP_MX_CACHE": "off"}
    for named in (None, "Prescott"):
        environment = plain if named is None else {**plain, NAME: named}
        output = subprocess.run(
            [sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, check=True
        ).stdout
        asked, used = json.loads(output)
        assert sorted(asked) == sorted(each["kernels"] for each in used.values())
        assert {each["library"] for each in used.values()} == {"openblas"} and len(used) == 2
        assert named in (None, *asked)  # a user's own setting stays, even a bad one


def test_where_the_processor_is_known_nothing_is_named_and_it_is_asked_once(
    unnamed, monkeypatch, tmp_path
):
    if blas.WITHOUT_AVX & set(blas._ask(blas._libraries())):
        pytest.skip("OpenBLAS does not know this processor")
    monkeypatch.setenv("EDP_MX_CACHE", str(tmp_path))
    name_kernels()
    (kept,) = (tmp_path / "kernels").iterdir()
    assert json.loads(kept.read_text()) == "" and NAME not in os.environ
    monkeypatch.setattr(blas, "_ask", lambda _: pytest.fail("asked again"))
    name_kernels()
    kept.write_text('"Haswell"')
    name_kernels()
    assert os.environ[NAME] == "Haswell"


def test_a_torn_or_closed_cache_is_no_obstacle(unnamed, monkeypatch, tmp_path):
    monkeypatch.setattr(blas, "_ask", lambda _: ["Zen"])
    for folder in (tmp_path, tmp_path / "file"):
        (tmp_path / "file").write_text("")
        monkeypatch.setenv("EDP_MX_CACHE", str(folder))
        for _ in range(2):
            name_kernels()
            for kept in (tmp_path / "kernels").glob("*"):
                kept.write_text('["torn')
    assert NAME not in os.environ


def test_a_users_own_setting_stays(intel_207, monkeypatch):
    monkeypatch.setattr(blas.Processor, "read", lambda: intel_207)
    monkeypatch.setattr(blas, "_ask", lambda _: pytest.fail("asked"))
    for own in ("Nehalem", ""):
        monkeypatch.setenv(NAME, own)
        name_kernels()
        assert os.environ[NAME] == own


@pytest.mark.slow
def test_kernels_that_are_not_there_are_passed_over():
    assert blas._choose(["NoSuchKernels", "Nehalem"]) == "Nehalem"
    assert blas._choose(["NoSuchKernels"]) == ""


def test_a_wrong_product_is_found(monkeypatch):
    import mxnet as mx

    name = kernels_in_use()["numpy"]["kernels"]
    blas_in_use.self_test(name)
    right = mx.nd.dot
    monkeypatch.setattr(mx.nd, "dot", lambda *args, **how: right(*args, **how) * 1.0001)
    with pytest.raises(ArithmeticError, match=rf"{name} multiplies \(1, 1, 1\) wrong"):
        blas_in_use.self_test(name)


def test_the_named_kernels_arrive_in_both_libraries_of_each_worker(intel_207, unnamed, monkeypatch):
    best, taken = best_here()
    monkeypatch.setenv("EDP_MX_CACHE", "off")
    monkeypatch.setattr(blas.Processor, "read", lambda: intel_207)
    monkeypatch.setattr(blas, "_ask", lambda _: old_kernels())
    name_kernels()
    assert os.environ[NAME] == best
    for used in run_workers(kernels_in_use, 2, is_fresh=True):
        assert {package: each["kernels"] for package, each in used.items()} == taken


def test_old_kernels_are_said_unless_the_user_named_them(unnamed, monkeypatch, caplog):
    if "avx" not in Processor.read().flags:
        pytest.skip("a processor without AVX")
    in_use = {"numpy": {"kernels": "Prescott"}, "mxnet": {"kernels": "Zen"}}
    monkeypatch.setattr(blas_in_use, "kernels_in_use", lambda: in_use)
    monkeypatch.setenv(NAME, "prescott")
    with caplog.at_level(logging.WARNING):
        blas_in_use.warn_of_slow_kernels()
        assert caplog.text == ""
        monkeypatch.setenv(NAME, "Haswell")  # too late for NumPy
        blas_in_use.warn_of_slow_kernels()
    assert "numpy multiply with old kernels (Prescott)" in caplog.text


def test_runs_and_records_say_which_kernels_ran():
    made = environment(1)
    assert made["blas"] == machine_of(structure(made, Environment)).blas == kernels_in_use()
    assert made["blas"]["numpy"]["version"].count(".") == 2
    assert machine_of(Environment(machine="Linux x86_64")).blas is None  # of before


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core has one thread")
def test_idle_threads_of_openblas_leave_the_cores_to_others():
    code = """
import time, edp_mx, numpy as np
large = np.ones((512, 512), np.float32)
def idle():
    large @ large
    start = time.process_time()
    time.sleep(0.05)
    return time.process_time() - start
print(max(idle() for _ in range(20)))
"""
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}
    environment.pop(TIMEOUT, None)
    spent = float(subprocess.check_output([sys.executable, "-c", code], env=environment))
    assert spent < 0.003  # seconds; 0.02 without the setting, unless the machine is busy
