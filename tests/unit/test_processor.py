"""What OpenBLAS is told of the processor, and when."""

import os
import subprocess
import sys

import pytest

from edp_mx import processor
from edp_mx.processor import core_type, tell_openblas

OLD = {"fpu", "sse", "sse2", "sse4_1"}
HASWELL = OLD | {"avx", "avx2", "fma"}
SKYLAKE = HASWELL | {"avx512f", "avx512dq", "avx512bw", "avx512vl"}


@pytest.mark.parametrize("flags, core", [
    (set(), None), (OLD, None), (OLD | {"avx2"}, None), (HASWELL, "Haswell"),
    (HASWELL | {"avx512f"}, "Haswell"), (SKYLAKE, "SkylakeX"), (SKYLAKE | {"amx"}, "SkylakeX"),
])  # fmt: skip
def test_never_a_core_that_the_processor_lacks(flags, core):
    assert core_type(frozenset(flags)) == core


@pytest.fixture
def asked(monkeypatch, tmp_path):
    """`tell_openblas` on a processor with AVX2, before mxnet."""
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(f"processor : 0\nflags\t\t: {' '.join(HASWELL)}\nprocessor : 1\n")
    monkeypatch.setattr(processor, "_CPUINFO", cpuinfo)
    monkeypatch.delenv("OPENBLAS_CORETYPE", raising=False)
    monkeypatch.delitem(sys.modules, "mxnet", raising=False)

    def ask():
        tell_openblas()
        return os.environ.get("OPENBLAS_CORETYPE")

    return ask


def test_it_is_told_before_mxnet_and_left_to_the_user(asked, monkeypatch):
    assert asked() == "Haswell"
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Zen")
    assert asked() == "Zen"


def test_too_late_or_unknown_nothing_is_said(asked, monkeypatch):
    monkeypatch.setitem(sys.modules, "mxnet", object())
    assert asked() is None
    monkeypatch.delitem(sys.modules, "mxnet")
    monkeypatch.setattr(processor, "_CPUINFO", processor._CPUINFO / "nowhere")
    assert asked() is None


def test_importing_the_package_tells_it_and_imports_little():
    code = (
        "import sys, os, edp_mx; print(os.environ.get('OPENBLAS_CORETYPE'), "
        "'numpy' in sys.modules, 'mxnet' in sys.modules)"
    )
    environment = {k: v for k, v in os.environ.items() if k != "OPENBLAS_CORETYPE"}
    printed = subprocess.run([sys.executable, "-c", code], env=environment, check=True,
                             stdout=subprocess.PIPE, text=True).stdout.split()  # fmt: skip
    assert printed == [str(core_type(processor._flags())), "False", "False"]
