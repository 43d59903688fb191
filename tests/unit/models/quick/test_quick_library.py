"""The library of our operators: loaded once, and left alone where it is not ours."""

import importlib.machinery
import logging

import mxnet as mx
import pytest
from mxnet.gluon import nn

from edp_mx.models import quick
from edp_mx.models.quick import library
from edp_mx.runtime.kernels import kernels


def test_its_operators_are_there_for_arrays_and_for_symbols():
    assert library.are_loaded()
    for name in library.NAMES:
        assert callable(getattr(mx.nd, name)) and callable(getattr(mx.sym, name))


def found_at(path, monkeypatch):
    spec = None if path is None else importlib.machinery.ModuleSpec("x", None, origin=str(path))
    monkeypatch.setattr(library, "find_spec", lambda name: spec)
    return library.are_loaded.__wrapped__()


def test_where_none_was_built_nothing_is_said(monkeypatch, caplog):
    with caplog.at_level(logging.WARNING):
        assert not found_at(None, monkeypatch)
    assert not caplog.records


@pytest.mark.parametrize("kind", ["torn", "another", "gone"])
def test_what_is_not_ours_is_refused_with_what_to_do(kind, tmp_path, monkeypatch, caplog):
    path = tmp_path / "_operators.so"
    if kind == "torn":
        path.write_bytes(b"\x7fELF and no more")
    if kind == "another":  # a library that says no version
        path = kernels()._library._name
    with caplog.at_level(logging.WARNING):
        assert not found_at(path, monkeypatch)
    assert "launch/setup.sh" in caplog.text and str(path) in caplog.text


def test_of_another_version_it_is_refused(monkeypatch, caplog):
    path = library.find_spec("edp_mx.models.quick._operators").origin
    monkeypatch.setattr(library, "VERSION", library.VERSION + 1)
    with caplog.at_level(logging.WARNING):
        assert not found_at(path, monkeypatch)
    assert f"not {library.VERSION}" in caplog.text


def test_without_it_and_on_a_gpu_mxnets_own_layers_stay(monkeypatch):
    net = nn.HybridSequential()
    net.add(nn.LayerNorm(), nn.Dropout(0.5))
    quick.quicken(net, mx.gpu())
    monkeypatch.setattr(quick, "are_loaded", lambda: False)
    quick.quicken(net, mx.cpu())
    assert [type(child) for child in net] == [nn.LayerNorm, nn.Dropout]
