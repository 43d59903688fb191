"""`benchmarks/attack_table.py`: what the runs came to is said; what is there is not redone."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from attack_table import main
from support.membership import made_scores

from edp_mx.attacks.directory import write_outcome
from edp_mx.attacks.membership.thresholds import Guesses, threshold_attacks
from edp_mx.config import dump_config, load_config
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.files import write_json

ROOT = Path(__file__).resolve().parents[3]


def files_of(corpus, mechanism):
    configs = ROOT / "configs"
    return [configs / f"{corpus}_clc.yaml", configs / "mechanism" / f"{mechanism}.yaml"]


def made_run(folder, name, *settings):
    """A finished run, without a model."""
    run = RunDirectory(folder / name)
    corpus, mechanism = name.split("_clc_")
    config = load_config(files_of(corpus, mechanism), settings)
    run.create(name, dump_config(config))
    bound = {"log10_epsilon": 4.4, "epsilon": 10**4.4}
    run.write("privacy", {"as_published": bound, "holds_if": {**bound, "log10_epsilon": None}})
    run.write("environment", {"num_workers": 1})
    run.write("results", {"test": {"ser": 0.0512}})
    return run


def attacked(run, generator):
    """The same, attacked in all ways; what was measured of the losses."""
    scores = replace(made_scores(generator, 60, gap=1.0), unknown_words=np.arange(120) % 2)
    found = write_outcome(run, "threshold", threshold_attacks(scores), scores, facts={})
    guesses = [Guesses("LiRA online", "says", generator.normal(size=120))]
    facts = {"shadows": 16, "shadows' epochs": 20}
    write_outcome(run, "lira", guesses, scores, facts=facts)
    canaries = [
        {"repeats": r, "by_fit": 2.0 * r, "by_rank": 1.0} for r in (1, 10, 100) for _ in "ab"
    ]
    settings = {"repeats": [1, 10, 100], "count": 2, "digits": 7, "candidates": 10_000}
    write_json(
        run.path / "attack-canaries" / "exposure.json",
        {"run": "x", "settings": settings, "canaries": canaries},
    )
    return {result["name"]: result for result in found["results"]}


def command(monkeypatch, folder, *arguments):
    """Runs the script; the programs that it starts only leave their names."""
    started = []

    def start(command, **_):
        started.append(command[command.index("edp_mx") + 1 :])
        return type("Ended", (), {"returncode": 0})

    monkeypatch.setattr("subprocess.run", start)
    options = ["--runs", str(folder), "--out", str(folder / "page.md")]
    monkeypatch.setattr(sys, "argv", ["attack_table.py", *options, *arguments])
    main()
    return started


def test_all_steps_in_their_order(monkeypatch, tmp_path):
    options = "--only atis --lira 4 --canaries sgd --set model.hidden_size=8 data.size=900"
    started = command(monkeypatch, tmp_path, *options.split())
    sgd, snips = str(tmp_path / "atis_clc_sgd"), str(tmp_path / "snips_clc_sgd")
    settings = ["--set", "model.hidden_size=8", "data.size=900"]
    assert started[0] == [
        "train", *map(str, files_of("atis", "sgd")), "--run", sgd, *settings]  # fmt: skip
    assert [one[0] for one in started].count("train") == 5
    assert ["attack", sgd, "--shadow", snips] in started
    linear = str(tmp_path / "atis_clc_edp_linear")
    assert ["attack", linear, "--shadow", snips] in started
    assert ["attack", sgd, "--lira", "4"] in started
    assert started.index(["attack", linear, "--shadows-of", sgd]) > started.index(
        ["attack", sgd, "--lira", "4"]
    )
    assert sum("--canaries" in one for one in started) == 1


def test_what_is_there_is_not_done_again(monkeypatch, generator, tmp_path):
    for name in ("atis_clc_sgd", "snips_clc_sgd"):
        attacked(made_run(tmp_path, name), generator)
    begun = made_run(tmp_path, "atis_clc_edp_none")
    (begun.path / "results.json").unlink()
    started = command(monkeypatch, tmp_path, "--only", "atis", "--canaries", "sgd")
    trained = [one for one in started if one[0] == "train"]
    assert trained[0] == ["train", "--resume", str(begun.path)] and len(trained) == 3
    of_sgd = [one for one in started if one[1] == str(tmp_path / "atis_clc_sgd")]
    assert [one[2] for one in of_sgd] == ["--shadow"]  # the only one that is missing


def test_runs_of_other_settings_are_refused(monkeypatch, tmp_path):
    made_run(tmp_path, "atis_clc_sgd", "training.epochs=7")
    with pytest.raises(SystemExit, match="holds a run with other settings"):
        command(monkeypatch, tmp_path, "--only", "atis")
