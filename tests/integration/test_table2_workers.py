"""Table 2 by real workers: killed in between and gone on with; a worker that hangs or dies."""

import json
import os
import signal

import pytest
from support.commands import CONFIGS, TINY, finish, start, wait_for

SMALL = ["--corpora", "health", "--models", "clc", "--configs", CONFIGS, "--steps", "2",
         "--rounds", "2", "--wide"]  # fmt: skip
SETTINGS = ["--set", "data.size=300", *TINY]


@pytest.mark.slow
def test_a_killed_table_goes_on_with_the_rows_that_it_lacks(tmp_path):
    page, record = tmp_path / "table2.md", tmp_path / "table2.json"
    command = ["experiments.table2", *SMALL, "--workers", "1", "2", "--out", page, *SETTINGS]
    process = start(*command, TMPDIR=str(tmp_path))
    wait_for(record.exists, process)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    (first,) = json.loads(record.read_text())
    assert first["workers"] == 1

    said = finish(start(*command, TMPDIR=str(tmp_path)))
    assert said.stdout == page.read_text() and "health clc, 2 workers (1 of 1)" in said.stderr
    rows = json.loads(record.read_text())
    assert rows[0] == first and [row["workers"] for row in rows] == [1, 2]
    for row in rows:
        assert (row["n"], row["batch_size"], row["steps_per_epoch"]) == (135, 16, 8)
        assert {len(times) for times in row["seconds"].values()} == {2}
        # Sixteen backward passes, or eight on each of two workers, instead of one.
        loop, sgd = (sum(row["processor_seconds"][name]) for name in ("dp_sgd_loop", "sgd"))
        assert loop > 1.5 * sgd
    lines = [line.split("|")[1:4] for line in said.stdout.splitlines() if "| Health" in line]
    assert [line[1].strip() for line in lines] == ["1 × 1", "2 × 1"] * 2
    assert all("≈" in line[2] and "[21.8]" in line[2] for line in lines[:2])
    assert str(tmp_path) not in said.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    "number, words",
    [
        (signal.SIGSTOP, ("nothing has moved for 60 s", "worker 1 is stopped")),
        (signal.SIGKILL, ("worker 1 (process", "died without a word")),
    ],
)
def test_a_worker_that_hangs_or_dies_is_named_in_one_sentence(number, words, tmp_path):
    settings = [*SETTINGS, "training.watchdog_seconds=60"]  # a busy machine builds for long
    process = start("experiments.table2", *SMALL, "--rounds", "10000", "--workers", "2", *settings,
                    TMPDIR=str(tmp_path))  # fmt: skip

    def signs():
        return [path for path in tmp_path.glob("table2-*/.workers/worker_1.json")
                if "epoch" in path.read_text()]  # fmt: skip

    wait_for(signs, process)
    pid = json.loads(signs()[0].read_text())["pid"]
    os.kill(pid, number)
    said = finish(process, code=2).stderr
    (line,) = (line for line in said.replace("\n  ", " ").splitlines() if words[0] in line)
    assert line.startswith("health clc, 2 workers: ") and words[1] in line
    assert said.splitlines()[-1] == (
        "experiments.table2: nothing could be measured; the reason of each row is above"
    )
    assert list(tmp_path.iterdir()) == []
