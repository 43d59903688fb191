"""The ledger: on disk before the release, torn at its end at most, refused when damaged."""

import dataclasses
import errno
import hashlib
import json
import os
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.made_ledgers import plan_with, poisson_plan, write_ledger
from support.refusals import one_sentence

from edp_mx.dp.accounting.chain import Chain
from edp_mx.dp.accounting.coverage import BROUGHT, Declaration
from edp_mx.dp.accounting.entries import Entry, merged
from edp_mx.dp.accounting.events import Event
from edp_mx.dp.accounting.ledger import LedgerFile, LedgerMark, read_ledger
from edp_mx.dp.accounting.ledger_account import account_for
from edp_mx.errors import UserError

PLAN = plan_with(num_records=100, delta=1e-3)
EPOCH = Entry("epoch 0", Event("shuffle", 0.5), 1.0)
NEXT = Entry("epoch 1", Event("shuffle", 0.25), 0.5)
STEPS = Entry("epoch 1", Event("poisson", 0.25, 40, 0.01), 0.5)
SCALES = Entry("layer scales", Event("shuffle", 10.0))


def write(path, *entries, plan=PLAN, mark=None):
    ledger = LedgerFile(path, plan, mark=mark)
    for entry in entries:
        ledger.append(entry)
    return path


def test_what_was_written_is_read(tmp_path):
    ledger = read_ledger(write(tmp_path / "l", SCALES, EPOCH, NEXT))
    assert ledger.plan == PLAN and not ledger.is_torn
    assert ledger.entries == (SCALES, EPOCH, NEXT)
    drawn = poisson_plan()
    ledger = read_ledger(write(tmp_path / "p", STEPS, STEPS, plan=drawn))
    assert (ledger.plan, ledger.entries) == (drawn, (STEPS, STEPS))


def test_alpha_is_known_from_its_line_on(tmp_path):
    file = LedgerFile(tmp_path / "l", PLAN)
    assert file.read().plan.release.layer_scales is None
    file.complete((0.25, 1.0))
    file.append(EPOCH)
    file.complete((0.25, 1.0))  # of the run that goes on: written once
    assert file.read().plan == PLAN.with_layer_scales((0.25, 1.0))
    assert (tmp_path / "l").read_bytes().count(b"\n") == 3
    LedgerFile(tmp_path / "l", PLAN)  # the head holds no α, and neither does what it is held to


def test_a_later_start_appends(tmp_path):
    write(tmp_path / "l", EPOCH)
    write(tmp_path / "l", EPOCH, NEXT)
    assert read_ledger(tmp_path / "l").entries == (EPOCH, EPOCH, NEXT)


@given(cut=st.integers(0, 10_000))
def test_a_crash_anywhere_leaves_a_prefix(tmp_path_factory, cut):
    """Cut after any byte: the whole lines are read, and the next start goes on behind them.

    A line that lacks its newline only was written whole, and may have been released.
    """
    path = write(tmp_path_factory.mktemp("l") / "l", EPOCH, NEXT, EPOCH)
    whole = path.read_bytes()
    cut = min(cut, len(whole))
    path.write_bytes(whole[:cut])
    lines = whole[: cut + 1].count(b"\n")
    if lines == 0:
        one_sentence("no whole line", read_ledger, path)
        write(path, NEXT)
        assert read_ledger(path).entries == (NEXT,)
        return
    ledger = read_ledger(path)
    assert ledger.entries == (EPOCH, NEXT, EPOCH)[: lines - 1]
    ends_whole = whole[:cut].endswith(b"\n") or whole[: cut + 1].endswith(b"\n")
    assert ledger.is_torn == (not ends_whole)
    write(path, NEXT)
    again = read_ledger(path)
    assert again.entries == (*ledger.entries, NEXT) and not again.is_torn


def marked(path, *entries):
    """A ledger with these entries, and the mark that a checkpoint takes of it."""
    file = LedgerFile(path, PLAN)
    for entry in entries:
        file.append(entry)
    return file.mark()


def test_a_mark_is_the_size_and_the_hash_of_all_bytes(tmp_path):
    mark = marked(tmp_path / "l", EPOCH, NEXT)
    content = (tmp_path / "l").read_bytes()
    assert mark == LedgerMark(len(content), hashlib.sha256(content).hexdigest())


@pytest.mark.parametrize(
    "damage, words",
    [
        (lambda lines: lines[:-1], "is shorter than the checkpoint's"),
        (lambda lines: lines[:1], "is shorter than the checkpoint's"),
        (lambda lines: [*lines[:-1], lines[-1][:9]], "is shorter than the checkpoint's"),
        (lambda lines: [lines[0], *lines[2:], lines[2]], "is not the one that lay beside the"),
        (lambda lines: [*lines[:-1], lines[-1].replace(b"0.25", b"0.26")], "is not the one"),
        (lambda lines: [lines[0].replace(b"100", b"101"), *lines[1:]], "is not the one"),
        (lambda lines: [], "is shorter than the checkpoint's"),
    ],
    ids=["last line", "all entries", "cut", "another line", "a byte", "a byte of the head", "all"],
)
def test_what_a_checkpoint_confirms_cannot_be_changed(tmp_path, damage, words):
    path = tmp_path / "l"
    mark = marked(path, EPOCH, NEXT)
    damaged = b"".join(damage(path.read_bytes().splitlines(keepends=True)))
    path.write_bytes(damaged)
    said = one_sentence(words, LedgerFile, path, PLAN, mark=mark)
    assert "nobody knows what the run has spent" in said
    assert path.read_bytes() == damaged  # nothing was mended or begun anew


def test_a_confirmed_ledger_that_is_gone_is_not_begun_anew(tmp_path):
    mark = marked(tmp_path / "l", EPOCH)
    (tmp_path / "l").unlink()
    one_sentence("nobody knows what the run has spent", LedgerFile, tmp_path / "l", PLAN, mark=mark)
    assert not (tmp_path / "l").exists()


@pytest.mark.parametrize("tail", ["", '{"what"'])
def test_a_ledger_that_went_on_after_its_checkpoint_is_fine(tmp_path, tail):
    path = tmp_path / "l"
    mark = marked(path, EPOCH)
    write(path, NEXT, mark=mark)
    with path.open("a") as file:
        file.write(tail)
    LedgerFile(path, PLAN, mark=mark).append(NEXT)
    assert read_ledger(path).entries == (EPOCH, NEXT, NEXT)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"count": -1}, "line 2: count is -1"),
        ({"what": None}, "line 2: an entry lacks 'what'"),
        ({"first_step": -1}, "line 2: first_step is -1"),
        ({"sampler": None}, "line 2: .*sampler"),
    ],
)
def test_a_line_that_is_no_entry_is_refused_by_its_number(tmp_path, change, message):
    given = {**EPOCH.to_dict(), **change}
    line = {key: value for key, value in given.items() if value is not None}
    path = write_ledger(tmp_path / "l", PLAN, [line, NEXT.to_dict()])
    for use in (read_ledger, lambda path: LedgerFile(path, PLAN)):
        assert str(path) in one_sentence(message, use, path)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda line: line.replace('"count": 1', '"count": x'), "line 2: not JSON"),
        (lambda line: line.replace('"count": 1', '"count": 2'), "line 2: its hash is wrong"),
        (lambda line: "[]\n", "line 2: not an entry"),
        (lambda line: "\x00\n", "line 2: not JSON"),
    ],
)
def test_a_damaged_line_is_refused_by_its_number(tmp_path, damage, message):
    path = write(tmp_path / "l", EPOCH, NEXT)
    lines = path.read_text().splitlines(keepends=True)
    lines[1] = damage(lines[1])
    path.write_text("".join(lines))
    for use in (read_ledger, lambda path: LedgerFile(path, PLAN)):
        assert str(path) in one_sentence(message, use, path)


@pytest.mark.parametrize("version", [2, 4])
def test_a_ledger_of_another_version_is_refused(tmp_path, version):
    head = {"version": version, "plan": PLAN.to_dict()}
    (tmp_path / "l").write_bytes(Chain().add(head))
    one_sentence("line 1: not the head of a ledger of version 3", read_ledger, tmp_path / "l")


@pytest.mark.parametrize("number", range(1, 6))
@pytest.mark.parametrize(
    "damage",
    [
        lambda lines, i: lines[:i] + lines[i + 1 :],
        lambda lines, i: lines[: i + 1] + lines[i:],
        lambda lines, i: lines[:i] + [lines[i + 1], lines[i]] + lines[i + 2 :],
    ],
    ids=["left out", "repeated", "swapped"],
)
def test_a_line_that_is_left_out_repeated_or_swapped_is_refused(tmp_path, number, damage):
    path = write(tmp_path / "l", EPOCH, EPOCH, NEXT, EPOCH, NEXT, NEXT)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(damage(lines, number)))
    said = one_sentence("a line was left out, moved or repeated", read_ledger, path)
    line = number + 2 if damage([0, 1, 2], 1) == [0, 1, 1, 2] else number + 1
    assert f"line {line}: " in said


@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize(
    "change",
    [
        lambda line: re.sub(r'"(num_records|count|noise_multiplier)": (\d)', r'"\1": 9\2', line),
        lambda line: (
            line.replace("epoch 0", "epoch 1").replace("[1.0", "[0.5").replace("0.001", "0.1")
        ),
        lambda line: re.sub(r', "sha256": "\w+"', "", line),
        lambda line: line.replace('"sha256": "', '"sha256": "0'),
        lambda line: line.replace("{", "{ ", 1),
    ],
    ids=["a number", "a word", "no hash", "a hash", "a blank"],
)
def test_a_line_that_was_changed_is_refused_by_its_number(tmp_path, number, change):
    """The findings' cases: n, α or a count in an otherwise valid line."""
    path = tmp_path / "l"
    file = LedgerFile(path, PLAN)
    file.complete((1.0, 1.0))
    file.append(EPOCH)
    file.append(EPOCH)
    lines = path.read_text().splitlines(keepends=True)
    changed = change(lines[number])
    if changed == lines[number]:
        pytest.skip("nothing of that kind is in this line")
    path.write_text("".join([*lines[:number], changed, *lines[number + 1 :]]))
    one_sentence(f"line {number + 1}: .*no ε can be read from it", read_ledger, path)


def test_the_hashes_are_what_the_docstring_says(tmp_path):
    lines = write(tmp_path / "l", EPOCH, NEXT).read_bytes().splitlines()
    digest = ""
    for number, line in enumerate(lines, start=1):
        body, tail = line.rsplit(b', "sha256": "', 1)
        assert json.loads(line)["line"] == number
        digest = hashlib.sha256(digest.encode() + body + b"}").hexdigest()
        assert tail == digest.encode() + b'"}'


def test_another_run_s_ledger_is_refused(tmp_path):
    path = write(tmp_path / "l", EPOCH)
    with pytest.raises(UserError, match="begun with num_records 100, but the run has 101"):
        LedgerFile(path, dataclasses.replace(PLAN, num_records=101))
    path.write_text(json.dumps({"version": 99, "plan": {}}) + "\n")
    one_sentence("line 1: no hash", read_ledger, path)
    one_sentence("without it nobody knows", read_ledger, tmp_path / "absent")


def test_an_entry_is_on_disk_before_append_returns(tmp_path, monkeypatch):
    path, synced = tmp_path / "l", []
    real = os.fsync
    monkeypatch.setattr(
        os, "fsync", lambda handle: (synced.append(path.stat().st_size), real(handle))
    )
    ledger = LedgerFile(path, PLAN)
    synced.clear()
    ledger.append(EPOCH)
    assert synced == [path.stat().st_size]


def test_a_full_disk_is_said_and_nothing_counts_as_written(tmp_path, monkeypatch):
    ledger = LedgerFile(tmp_path / "l", PLAN)

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    one_sentence("No space left on device; nothing was released", ledger.append, EPOCH)


def test_what_a_full_disk_tore_is_gone_and_the_next_line_follows(tmp_path, monkeypatch):
    ledger = LedgerFile(tmp_path / "ledger.jsonl", PLAN)
    whole, synced = (tmp_path / "ledger.jsonl").read_bytes(), os.fsync

    def full(handle):
        synced(handle)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match="No space left"):
        ledger.append(EPOCH)
    monkeypatch.setattr(os, "fsync", synced)
    assert (tmp_path / "ledger.jsonl").read_bytes() == whole
    ledger.append(EPOCH)
    assert ledger.read().entries == (EPOCH,)


def test_merged_keeps_the_sum_of_counts():
    entries = (EPOCH, EPOCH, STEPS, EPOCH)
    short = merged(entries)
    assert [entry.event.count for entry in short] == [2, 40, 1]


def test_what_is_said_of_inputs_stays_as_it_was_begun_and_older_ledgers_say_nothing(tmp_path):
    """A run of an older version, whose head has no such key, goes on and counts the same."""
    told = Declaration("start", "tinybert, whose training text nobody here knows", is_open=True)
    plan, path = plan_with(declarations=(told,)), tmp_path / "ledger.jsonl"
    LedgerFile(path, plan).append(plan.entry(0))
    LedgerFile(path, plan_with(declarations=()))  # what is said now changes nothing
    assert read_ledger(path).plan.declarations == (told,)
    said = account_for(path).spent
    assert told.said in said.not_covered and BROUGHT not in said.not_covered
    assert said.to_dict()["declarations"] == [f"start: {told.said}"]
    head = {"version": 3, "plan": plan.to_dict()}
    del head["plan"]["declarations"]
    older = tmp_path / "older.jsonl"
    older.write_bytes(Chain().add(head))
    LedgerFile(older, plan).append(plan.entry(0))
    unsaid = account_for(older).spent
    assert BROUGHT in unsaid.not_covered and unsaid.to_dict()["declarations"] == []
    assert (unsaid.holds, unsaid.as_published) == (said.holds, said.as_published)
