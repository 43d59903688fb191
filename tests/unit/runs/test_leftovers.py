"""What a killed process leaves is cleared, and a run stays where it belongs."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from support.cli import run
from support.commands import QUICKSTART

from edp_mx.config import load_config
from edp_mx.errors import UserError
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.files import remove_leftovers, whole_file


@pytest.mark.parametrize("name", ["../../x", "/tmp/x", "a/b", "a\0b", "x" * 300])
def test_a_name_stays_below_the_folder_of_runs(name, tmp_path):
    with pytest.raises(UserError, match="name must be short and without /, since it begins"):
        load_config(QUICKSTART, {"name": name})
    assert RunDirectory.choose("mine..2", tmp_path).path.parent == tmp_path


def test_trainings_that_begin_in_the_same_instant_have_folders_of_their_own(tmp_path):
    with ThreadPoolExecutor(16) as pool:
        chosen = [pool.submit(RunDirectory.choose, "mine", tmp_path) for _ in range(64)]
    assert len({each.result().path for each in chosen}) == 64


def test_a_run_that_is_resumed_clears_half_written_files(tmp_path):
    kept = {"checkpoint.npz", ".workers", ".checkpoint.npz", ".notes.a1b2c3d4", "config.yaml"}
    left = {".checkpoint.npz.a1b2c3d4", ".privacy.json.________", ".metrics.jsonl.zzzz0000"}
    for name in kept | left:
        (tmp_path / name).write_text("")
    with RunDirectory(tmp_path).locked():
        assert {path.name for path in tmp_path.iterdir()} == kept


def test_what_whole_file_leaves_is_recognised(tmp_path):
    with whole_file(tmp_path / "weights.npz"):
        (half,) = tmp_path.iterdir()
        remove_leftovers(tmp_path, ["other.npz"])
        assert half.exists()
        copy = half.rename(tmp_path / half.name)
        remove_leftovers(tmp_path, ["weights.npz"])
        assert not copy.exists()
        half.touch()


def test_data_make_goes_on_after_a_kill(tmp_path):
    (tmp_path / ".utterances.jsonl.a1b2c3d4").write_text("half")
    assert run("data", "make", "health", "--size", 3, "--out", tmp_path) == 0
    (tmp_path / ".mine.jsonl.a1b2c3d4").write_text("not ours")
    with pytest.raises(UserError, match="holds something else"):
        run("data", "make", "health", "--size", 3, "--out", tmp_path)
