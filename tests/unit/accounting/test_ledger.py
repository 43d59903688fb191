"""The ledger: on disk before the release, torn at its end at most, refused when damaged."""

from __future__ import annotations

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edp_mx.accounting.events import Event
from edp_mx.accounting.ledger import Entry, LedgerFile, merged, read_ledger
from edp_mx.errors import UserError

FACTS = {"num_examples": 100, "release": {"kappa": 2.0}}
EPOCH = Entry("epoch 0", Event("shuffle", 0.5), 1.0)
STEPS = Entry("epoch 1", Event("poisson", 0.25, 40, 0.01), 0.5)
SCALES = Entry("layer scales", Event("shuffle", 10.0))


def write(path, *entries, facts=FACTS):
    ledger = LedgerFile(path, facts)
    for entry in entries:
        ledger.append(entry)
    return path


def test_what_was_written_is_read(tmp_path):
    ledger = read_ledger(write(tmp_path / "l", SCALES, EPOCH, STEPS))
    assert ledger.facts == FACTS and not ledger.is_torn
    assert ledger.entries == (SCALES, EPOCH, STEPS)
    assert ledger.events == (SCALES.event, EPOCH.event, STEPS.event)


def test_a_later_start_appends(tmp_path):
    write(tmp_path / "l", EPOCH)
    write(tmp_path / "l", EPOCH, STEPS)
    assert read_ledger(tmp_path / "l").entries == (EPOCH, EPOCH, STEPS)


@given(cut=st.integers(0, 10_000))
def test_a_crash_anywhere_leaves_a_prefix(tmp_path_factory, cut):
    """Cut after any byte: the whole lines are read, and the next start goes on behind them."""
    path = write(tmp_path_factory.mktemp("l") / "l", EPOCH, STEPS, EPOCH)
    whole = path.read_bytes()
    cut = min(cut, len(whole))
    path.write_bytes(whole[:cut])
    lines = whole[:cut].count(b"\n")
    if lines == 0:
        with pytest.raises(UserError, match="no whole line"):
            read_ledger(path)
        write(path, STEPS)
        assert read_ledger(path).entries == (STEPS,)
        return
    ledger = read_ledger(path)
    assert ledger.entries == (EPOCH, STEPS, EPOCH)[: lines - 1]
    assert ledger.is_torn == (not whole[:cut].endswith(b"\n"))
    write(path, STEPS)
    again = read_ledger(path)
    assert again.entries == (*ledger.entries, STEPS) and not again.is_torn


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda lines: lines[1].replace('"count": 1', '"count": x'), "line 2: not JSON"),
        (lambda lines: lines[1].replace('"count": 1', '"count": -1'), "line 2: count is -1"),
        (lambda lines: lines[1].replace('"what"', '"that"'), "line 2: an entry lacks 'what'"),
        (lambda lines: lines[1].replace('"sampler"', '"sample"'), "line 2: .*sampler"),
        (lambda lines: "[]\n", "line 2: not an entry"),
        (lambda lines: "\x00\n", "line 2: not JSON"),
    ],
)
def test_a_damaged_line_is_refused_by_its_number(tmp_path, damage, message):
    path = write(tmp_path / "l", EPOCH, STEPS)
    lines = path.read_text().splitlines(keepends=True)
    lines[1] = damage(lines)
    path.write_text("".join(lines))
    for use in (read_ledger, lambda path: LedgerFile(path, FACTS)):
        with pytest.raises(UserError, match=message):
            use(path)


def test_another_run_s_ledger_is_refused(tmp_path):
    path = write(tmp_path / "l", EPOCH)
    with pytest.raises(UserError, match="begun with num_examples 100, but the run has 101"):
        LedgerFile(path, {**FACTS, "num_examples": 101})
    path.write_text(json.dumps({"version": 99, "facts": {}}) + "\n")
    with pytest.raises(UserError, match="line 1: not the head"):
        read_ledger(path)
    with pytest.raises(UserError, match="without it nobody knows"):
        read_ledger(tmp_path / "absent")


def test_an_entry_is_on_disk_before_append_returns(tmp_path, monkeypatch):
    path, synced = tmp_path / "l", []
    real = os.fsync
    monkeypatch.setattr(
        os, "fsync", lambda handle: (synced.append(path.stat().st_size), real(handle))
    )
    ledger = LedgerFile(path, FACTS)
    synced.clear()
    ledger.append(EPOCH)
    assert synced == [path.stat().st_size]


def test_a_full_disk_is_said_and_nothing_counts_as_written(tmp_path, monkeypatch):
    ledger = LedgerFile(tmp_path / "l", FACTS)

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match="No space left on device; nothing was released"):
        ledger.append(EPOCH)


def test_merged_keeps_the_sum_of_counts():
    entries = (EPOCH, EPOCH, STEPS, EPOCH)
    short = merged(entries)
    assert [entry.event.count for entry in short] == [2, 40, 1]
