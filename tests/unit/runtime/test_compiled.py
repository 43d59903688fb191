"""Compiled libraries: both are there, and what cannot be used is refused with what to do."""

import importlib.machinery

import mxnet as mx
import pytest
from mxnet.gluon import nn
from support.refusals import one_sentence

from edp_mx.models.quick import library, quicken
from edp_mx.runtime import compiled, kernels

KERNELS = "edp_mx.runtime._kernels"


def test_the_operators_are_there_for_arrays_and_for_symbols():
    library.load_operators()
    for name in library.NAMES:
        assert callable(getattr(mx.nd, name)) and callable(getattr(mx.sym, name))


@pytest.mark.parametrize("load", [kernels.kernels, library.load_operators])
@pytest.mark.parametrize("fault, reason", [
    ("missing", "was not compiled"),
    ("gone", "cannot open shared object file"),
    ("torn", "file too short"),
    ("another", "undefined symbol"),
])  # fmt: skip
def test_what_cannot_be_used_is_refused_with_what_to_do(load, fault, reason, tmp_path, monkeypatch):
    path = tmp_path / "library.so"
    if fault == "torn":
        path.write_bytes(b"\x7fELF and no more")
    if fault == "another":  # the C library, which has no function of this name
        path = "libc.so.6"
    spec = importlib.machinery.ModuleSpec("x", None, origin=str(path))
    monkeypatch.setattr(compiled, "find_spec", lambda name: None if fault == "missing" else spec)
    one_sentence(f"{reason}.*launch/setup.sh", load.__wrapped__)


@pytest.mark.parametrize("module, load", [(kernels, kernels.kernels),
                                          (library, library.load_operators)])  # fmt: skip
def test_of_another_version_it_is_refused(module, load, monkeypatch):
    monkeypatch.setattr(module, "VERSION", module.VERSION + 1)
    one_sentence(f"version {module.VERSION - 1}, not {module.VERSION}", load.__wrapped__)


def test_what_mxnet_cannot_load_is_refused(monkeypatch):
    no_operators = compiled.open_library(KERNELS, version=kernels.VERSION, function="version")
    monkeypatch.setattr(library, "open_library", lambda *_, **__: no_operators)
    one_sentence("cannot be used.*launch/setup.sh", library.load_operators.__wrapped__)


def test_on_a_gpu_mxnets_own_layers_stay():
    net = nn.HybridSequential()
    net.add(nn.LayerNorm(), nn.Dropout(0.5))
    quicken(net, mx.gpu())
    assert [type(child) for child in net] == [nn.LayerNorm, nn.Dropout]
