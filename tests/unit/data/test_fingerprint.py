"""Keyed fingerprints: equal for the same key and text, and of no use to whoever lacks the key."""

import hashlib
import hmac
import stat

import pytest
from support.refusals import one_sentence

from edp_mx.data.fingerprint import is_same, keyed

PRINT, OTHER = "0123456789abcdef", "0123456789abcdee"


@pytest.fixture
def key(tmp_path, monkeypatch):
    """Where this test's machine keeps its key; not there yet."""
    path = tmp_path / "keys" / "fingerprint.key"
    monkeypatch.setenv("EDP_MX_KEY", str(path))
    return path


def test_it_is_the_hmac_of_the_fingerprint(key):
    found = keyed(PRINT)
    expected = hmac.new(key.read_bytes(), PRINT.encode(), hashlib.sha256).hexdigest()
    assert found["digest"] == expected[:32]
    assert keyed(PRINT) == found and keyed(OTHER)["digest"] != found["digest"]
    assert PRINT not in str(found) and key.read_bytes().hex() not in str(found)


def test_the_key_is_its_owner_s_alone(key):
    keyed(PRINT)
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert stat.S_IMODE(key.parent.stat().st_mode) == 0o700
    assert len(key.read_bytes()) == 32
    assert [path.name for path in key.parent.iterdir()] == [key.name]


def test_a_recorded_one_is_compared_by_the_key_it_was_made_with(key):
    recorded = keyed(PRINT)
    assert is_same(recorded, PRINT) is True and is_same(recorded, OTHER) is False
    key.unlink()  # another machine
    assert is_same(recorded, PRINT) is None and is_same(recorded, OTHER) is None
    assert keyed(PRINT)["key"] != recorded["key"]


def test_without_the_variable_it_lies_in_the_configuration_folder(tmp_path, monkeypatch):
    monkeypatch.delenv("EDP_MX_KEY")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    keyed(PRINT)
    assert (tmp_path / "edp_mx" / "fingerprint.key").exists()
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    keyed(PRINT)
    assert (tmp_path / "home" / ".config" / "edp_mx" / "fingerprint.key").exists()


def test_a_file_that_is_no_key_is_said(key):
    key.parent.mkdir()
    key.write_bytes(b"short")
    one_sentence("not a key of 32 bytes", keyed, PRINT)
    key.unlink()
    key.mkdir()
    one_sentence("name another file by EDP_MX_KEY", keyed, PRINT)
