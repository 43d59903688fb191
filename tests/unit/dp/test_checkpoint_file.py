"""Checkpoints with a checksum: what is torn or flipped is noticed, and the one before is used."""

import os
import subprocess
import sys

import numpy as np
import pytest
from support.refusals import one_sentence

from edp_mx.dp import checkpoint_file
from edp_mx.dp.checkpoint_file import (
    checkpoints,
    damage_of,
    newest_whole,
    remove_checkpoints,
    write_checkpoint,
)
from edp_mx.runtime.files import remove_leftovers


def written(folder, *numbers):
    """Checkpoints with these numbers, one after the other."""
    path = folder / "checkpoint.npz"
    for number in numbers:
        write_checkpoint(path, {"facts/number": np.array(number), "w": np.arange(5.0)})
    return path


def numbers(path):
    return [int(np.load(found)["facts/number"]) for found in checkpoints(path)]


def test_the_last_two_are_kept_in_order(tmp_path):
    assert numbers(written(tmp_path, 7)) == [7]
    path = written(tmp_path, 8, 9)
    assert numbers(path) == [9, 8] and newest_whole(path) == path
    assert sorted(os.listdir(tmp_path)) == ["checkpoint-1.npz", "checkpoint.npz"]
    remove_checkpoints(path)
    assert not os.listdir(tmp_path) and newest_whole(path) is None


def test_every_flipped_bit_and_every_torn_file_is_noticed(tmp_path):
    path = written(tmp_path, 1)
    whole = path.read_bytes()
    assert not damage_of(path)
    for place in range(len(whole)):
        flipped = bytearray(whole)
        flipped[place] ^= 1 << place % 8
        path.write_bytes(flipped)
        assert damage_of(path), place
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        assert damage_of(path), length
    path.write_bytes(whole + b"\0")
    assert damage_of(path)


def test_the_one_before_a_damaged_one_is_used_and_the_log_says_so(tmp_path, caplog):
    path = written(tmp_path, 1, 2, 3)
    path.write_bytes(path.read_bytes()[:-100])
    assert newest_whole(path).name == "checkpoint-1.npz"
    assert (
        "checkpoint.npz is torn: its checksum is missing; checkpoint-1.npz, the one" in caplog.text
    )
    path.unlink()
    assert newest_whole(path).name == "checkpoint-1.npz"
    for found in checkpoints(path):
        content = bytearray(found.read_bytes())
        content[40] ^= 4
        found.write_bytes(content)
    one_sentence("checkpoint-1.npz was damaged or changed.*nothing whole", newest_whole, path)


def test_a_disk_that_is_full_harms_none_of_them(tmp_path, monkeypatch):
    path = written(tmp_path, 1, 2)
    before = {found: found.read_bytes() for found in checkpoints(path)}

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint_file.os, "fsync", full)
    one_sentence("No space left", written, tmp_path, 3)
    assert {found: found.read_bytes() for found in checkpoints(path)} == before
    assert len(os.listdir(tmp_path)) == 2


def test_what_is_left_by_a_kill_in_between_is_cleared(tmp_path, monkeypatch):
    path = written(tmp_path, 1)

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint_file.os, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            written(tmp_path, 2)
    assert len(os.listdir(tmp_path)) == 2 and numbers(path) == [1]
    remove_leftovers(tmp_path)
    assert os.listdir(tmp_path) == ["checkpoint.npz"]
    assert numbers(written(tmp_path, 3)) == [3, 1]


def test_a_file_system_without_links_keeps_them_too(tmp_path, monkeypatch):
    def refused(*_):
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(checkpoint_file.os, "link", refused)
    assert numbers(written(tmp_path, 1, 2, 3)) == [3, 2]


WITH_LITTLE_MEMORY = """
import resource, sys
from pathlib import Path
import numpy as np
from edp_mx.dp.checkpoint_file import write_checkpoint

path, arrays = Path(sys.argv[1]), {"a": np.ones(8_000_000)}
write_checkpoint(path, {"a": np.ones(3)})
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 2_000_000, -1))
try:
    write_checkpoint(path, arrays)
except MemoryError:
    print("no memory")
"""


def test_a_lack_of_memory_is_told_as_such_and_costs_no_checkpoint(tmp_path):
    """`np.savez` hid it behind another error, and left a traceback of its own."""
    path = tmp_path / "checkpoint.npz"
    command = [sys.executable, "-c", WITH_LITTLE_MEMORY, path]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (said.stdout, said.stderr) == ("no memory\n", "")
    assert newest_whole(path) == path and np.load(path)["a"].tolist() == [1, 1, 1]
    assert [each.name for each in tmp_path.iterdir()] == ["checkpoint.npz"]
