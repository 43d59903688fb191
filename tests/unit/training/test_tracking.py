"""Trackers: what a run's epochs become there, as each tracker's own library reads it back."""

import json
import os
import subprocess
import sys

import pytest
from support.commands import CONFIGS, edp_mx

from edp_mx.training.log import TRACKERS, MetricsLog

ROWS = [{"epoch": e, "loss": 1.0 / e, "ser": 50.0 - e, "epsilon_holds_if": 0.5 * e,
         "epsilon_holds": float("inf")} for e in (1, 2, 3)]  # fmt: skip
FINITE = {"loss", "ser", "epsilon_holds_if"}


def logged(run, tracking):
    """Log two epochs, and resume after the first, as after a crash in the second."""
    run.mkdir()
    for rows, start in ((ROWS[:2], 1), (ROWS[1:], 2)):
        log = MetricsLog(run / "metrics.jsonl", start=start, tracking=tracking)
        for row in rows:
            log.add(row)
        log.close()
    assert len((run / "metrics.jsonl").read_text().splitlines()) == 3


def expected(name):
    return [(row["epoch"], pytest.approx(row[name])) for row in ROWS]


def test_tensorboard_has_each_epoch_once(tmp_path):
    accumulators = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator", reason="edp_mx[tensorboard]"
    )
    logged(tmp_path / "run", "tensorboard")
    read = accumulators.EventAccumulator(str(tmp_path / "run" / "events"))
    read.Reload()
    assert set(read.Tags()["scalars"]) == FINITE
    for name in FINITE:
        assert [(each.step, each.value) for each in read.Scalars(name)] == expected(name)


def test_mlflow_has_all_epochs_in_each_start(tmp_path, monkeypatch):
    tracking = pytest.importorskip("mlflow.tracking", reason="edp_mx[mlflow]")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    logged(tmp_path / "run", "mlflow")
    client = tracking.MlflowClient((tmp_path / "run" / "mlruns").as_uri())
    ids = [each.experiment_id for each in client.search_experiments()]
    runs = client.search_runs(ids, order_by=["attributes.start_time"])
    assert [run.info.status for run in runs] == ["FINISHED"] * 2
    assert set(runs[-1].data.metrics) == FINITE and runs[-1].info.run_name == "run"
    for name in FINITE:
        history = client.get_metric_history(runs[-1].info.run_id, name)
        assert [(each.step, each.value) for each in history] == expected(name)


def framed(data):
    """Yield the records of a `.wandb` file: LevelDB's log, blocks of 32 KiB after 7 bytes."""
    place, whole = 7, b""
    while place + 7 <= len(data):
        rest = 32768 - place % 32768
        if rest < 7:
            place += rest
            continue
        length, kind = int.from_bytes(data[place + 4 : place + 6], "little"), data[place + 6]
        whole += data[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):  # whole, or the last of several parts
            yield whole
            whole = b""


def test_wandb_has_all_epochs_and_stays_offline(tmp_path, monkeypatch):
    pytest.importorskip("wandb", reason="edp_mx[wandb]")
    from wandb.proto.wandb_internal_pb2 import Record

    monkeypatch.delenv("WANDB_MODE", raising=False)
    logged(tmp_path / "run", "wandb")
    folders = sorted((tmp_path / "run" / "wandb").glob("offline-run-*"), key=os.path.getmtime)
    (path,) = folders[-1].glob("*.wandb")
    found = []
    for record in map(Record.FromString, framed(path.read_bytes())):
        if record.WhichOneof("record_type") == "history":
            items = record.history.item
            found.append({(i.key or i.nested_key[0]): json.loads(i.value_json) for i in items})
    assert len(folders) == 2 and [row["_step"] for row in found] == [1, 2, 3]
    for name in FINITE:
        assert [(row["_step"], row[name]) for row in found] == expected(name)


def test_a_tracker_that_fails_ends_alone(tmp_path, monkeypatch, caplog):
    def broken(*_):
        raise RuntimeError("no space")

    tracker = TRACKERS["tensorboard"]
    opened = tracker.open(tmp_path)._replace(add=broken)
    monkeypatch.setitem(TRACKERS, "tensorboard", tracker._replace(open=lambda _: opened))
    logged(tmp_path / "run", "tensorboard")
    assert caplog.messages.count("tensorboard ended (no space); metrics.jsonl has all numbers") == 2


@pytest.mark.parametrize("name", sorted(set(TRACKERS) - {"none", "tensorboard"}))
def test_a_missing_package_is_refused_before_training(name, tmp_path):
    found = subprocess.run([sys.executable, "-c", f"import {TRACKERS[name].package}"],
                           cwd=tmp_path, capture_output=True, check=False)  # fmt: skip
    if found.returncode == 0:
        pytest.skip(f"{name} is installed")
    for options in (["--check-files"], ["--check"], ["--run", tmp_path / "run"]):
        errors = edp_mx("train", CONFIGS / "quickstart.yaml", "--set",
                        f"training.tracking={name}", *options, code=2).stderr  # fmt: skip
        assert f"pip install 'edp_mx[{name}]'" in errors and errors.count("\n") == 1
    assert not (tmp_path / "run").exists()
