"""Nothing was lost when single files, from git's history, became lines."""

import io
import json
import subprocess
import tarfile
from pathlib import Path

import pytest
from support.documentation import ROOT

from edp_mx.runs.record_files import is_attack, key_of_attack, run_id

FILES = {  # where they were, and where they are
    "results/records": ("results/runs.jsonl", "results/attacks.jsonl"),
    "results/grids": ("results/grids.jsonl",),
    "results/tradeoff": ("results/tradeoff/runs.jsonl", "results/tradeoff/attacks.jsonl"),
}


def git(*words):
    return subprocess.run(["git", "-C", ROOT, *words], capture_output=True, check=True).stdout


def single_files(folder):
    """The files of a folder as they were before they were removed."""
    removed = git("log", "--diff-filter=D", "--format=%H", "-1", "--", f"{folder}/*.json").decode()
    if not removed:
        pytest.skip("git's history is not here")
    whole = io.BytesIO(git("archive", f"{removed.strip()}^", folder))
    with tarfile.open(fileobj=whole) as archive:
        for member in archive.getmembers():
            if member.name.endswith(".json"):
                yield Path(member.name), json.loads(archive.extractfile(member).read())


@pytest.mark.slow
@pytest.mark.parametrize("folder", FILES)
def test_each_single_file_is_a_line(folder):
    """The lines may be more by now. A line may also say by its id which run was attacked."""
    lines = [json.loads(line) for name in FILES[folder] for line in (ROOT / name).open()]
    runs = {run_id(each): each for each in lines if not is_attack(each)}
    attacks = {key_of_attack(each): each for each in lines if is_attack(each)}
    assert len(runs) + len(attacks) == len(lines)
    files = dict(single_files(folder))
    assert (
        len(files) == {"results/records": 952, "results/grids": 147, "results/tradeoff": 70}[folder]
    )
    for path, record in files.items():
        if is_attack(record) and "run" not in record:
            beside = path.with_name(f"{path.name.rpartition('-attack-')[0]}.json")
            record["run"] = run_id(files[beside]) if beside in files else ""
        found = attacks[key_of_attack(record)] if is_attack(record) else runs[run_id(record)]
        assert found == record, path
