"""A sweep through the command line: killed in the middle, gone on with, and its records kept."""

import json
import os
import signal

from support.commands import QUICKSTART, TINY, edp_mx, lines_of, read, start, wait_for

SWEEP = """\
base: [{base}]
parameters:
  training.seed: [0, 1]
  training.epochs: [1]
"""


def test_a_killed_sweep_goes_on_without_repeating_a_trial(tmp_path):
    settings = "".join(f"  {text.replace('=', ': [')}]\n" for text in ("data.size=300", *TINY))
    (tmp_path / "sweep.yaml").write_text(SWEEP.format(base=QUICKSTART) + settings)
    out, journal = tmp_path / "out", tmp_path / "out" / "journal.jsonl"
    command = ["sweep", tmp_path / "sweep.yaml", "--out", out, "--records", tmp_path / "kept"]

    process = start(*command)
    wait_for(lambda: lines_of(journal) >= 3, process)  # begun, finished, begun
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    ((first, record),) = [(run, read(run, "record")) for run in out.glob("trial-*/")
                          if (run / "record.json").exists()]  # fmt: skip
    assert record["name"] == "quickstart" and record["workers"] == 1 and record["epochs"] == 1
    assert str(tmp_path) not in json.dumps(record)
    edp_mx("runs", "keep", first, "--into", tmp_path / "kept")
    kept = tmp_path / "kept" / "runs.jsonl"
    assert [json.loads(kept.read_text())] == [record]

    said = edp_mx(*command)
    assert "2 trials, 1 of them to be trained" in said.stderr
    assert said.stdout.count("\n| ") == 3 and "best: --set training.seed=" in said.stdout
    assert f"{out / 'trials.png'} shows" in said.stdout
    assert (out / "trials.png").read_bytes().startswith(b"\x89PNG")
    events = [json.loads(line) for line in journal.read_text().splitlines()]
    assert [e["event"] for e in events] == ["begun", "finished", "begun", "begun", "finished"]
    assert len({e["hash"] for e in events if e["event"] == "finished"}) == 2

    listed = json.loads(edp_mx("runs", out, kept, "--json", "--sort", "score").stdout)
    assert len(listed) == 2 and listed[0]["test"]["ser"] <= listed[1]["test"]["ser"]
    (one,) = json.loads(edp_mx("runs", out, "--where", "training.seed=1", "--json").stdout)
    assert one["settings"]["training.seed"] == 1
