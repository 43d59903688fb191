"""A sweep through the command line: killed in the middle, gone on with, and its records kept."""

import json
import os
import signal

from support.commands import QUICKSTART, TINY, edp_mx, read, start, wait_for

SWEEP = """\
base: [{base}]
parameters:
  training.seed: [0, 1]
  training.epochs: [1]
"""


def test_a_killed_sweep_goes_on_without_repeating_a_trial(tmp_path):
    settings = "".join(f"  {text.replace('=', ': [')}]\n" for text in ("data.size=300", *TINY))
    (tmp_path / "sweep.yaml").write_text(SWEEP.format(base=QUICKSTART) + settings)
    out = tmp_path / "out"
    command = ["sweep", tmp_path / "sweep.yaml", "--out", out, "--records", tmp_path / "kept"]

    process = start(*command)
    wait_for(lambda: len(list(out.glob("trial-*/environment.json"))) == 2, process)  # it has begun
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    first = next(out.glob("trial-*/record.json")).parent
    record = read(first, "record")
    assert record["name"] == "quickstart" and record["workers"] == 1 and record["epochs"] == 1
    assert str(tmp_path) not in json.dumps(record)
    edp_mx("runs", "keep", first, "--into", tmp_path / "kept")
    kept = tmp_path / "kept" / "runs.jsonl"
    assert [json.loads(kept.read_text())] == [record]

    said = edp_mx(*command)
    assert said.stdout.count("\n| ") == 3 and "best: --set training.seed=" in said.stdout
    assert f"{out / 'trials.png'} shows" in said.stdout
    assert (out / "trials.png").read_bytes().startswith(b"\x89PNG")
    assert len(list(out.glob("trial-*/"))) == 2  # neither was begun anew
    trials = json.loads(edp_mx(*command, "--json").stdout)
    assert {each["values"]["training.seed"] for each in trials} == {0, 1}
    assert all(each["ser"] and each["error"] is None for each in trials)

    listed = json.loads(edp_mx("runs", out, kept, "--json", "--sort", "score").stdout)
    assert len(listed) == 2 and listed[0]["test"]["ser"] <= listed[1]["test"]["ser"]
    (one,) = json.loads(edp_mx("runs", out, "--where", "training.seed=1", "--json").stdout)
    assert one["settings"]["training.seed"] == 1
