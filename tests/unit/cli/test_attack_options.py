"""`edp-mx attack` reads each option that it takes, and no shadow that is unfit."""

import pytest

from edp_mx import cli
from edp_mx.cli.attack import request_of
from edp_mx.config import ExperimentConfig, dump_config
from edp_mx.models.bert import BERTConfig
from edp_mx.runs.run_directory import RunDirectory


def run_at(path, config=None, *, has_ended=True):
    """A run directory that is looked at, and never loaded."""
    run = RunDirectory(path)
    run.create("made", dump_config(config or ExperimentConfig()))
    if has_ended:
        run.write("results", {})
    return path


@pytest.mark.parametrize("options, said", [
    (["--from-scores", "--seed", "5", "--size", "10", "--balanced"],
     "leave out --balanced, --size, --seed"),
    (["--from-scores", "--set", "nonsense.key=3"], "no model is trained that --set could change"),
    (["--set", "training.epochs=1"], "leave out --set"),
    (["--shadows-of", "x", "--set", "training.epochs=1"], "leave out --set"),
    (["--lira", "4", "--jobs", "0"], "--jobs is 0; "),
    (["--jobs", "2"], "leave out --jobs"),
    (["--shadows-of", "x", "--jobs", "2"], "leave out --jobs"),
    (["--lira", "4", "--shadows-of", "x"], "leave out --lira"),
    (["--canary-count", "2", "--canary-digits", "5"], "leave out --canary-count, --canary-digits"),
    (["--from-scores", "--candidates", "99"], "leave out --candidates"),
    (["--runs", "x"], "leave out --runs"),
    (["--out", "x.png"], "go with --compare"),
    (["another"], "go with --compare"),
    (["--compare", "--json"], "leave out --json"),
    (["--compare", "--lira", "4", "--jobs", "1"], "leave out --lira, --jobs"),
    (["--compare", "--shadow", "x", "--canaries"], "leave out --shadow, --canaries"),
])  # fmt: skip
def test_an_option_that_nothing_reads_is_refused(options, said, capsys):
    assert cli.main(["attack", "run", *options]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line


@pytest.mark.parametrize("options", [
    ["--seed", "0", "--size", "9", "--balanced", "--json"],
    ["--from-scores", "--json"],
    ["--lira", "4", "--jobs", "1", "--set", "training.epochs=1", "--seed", "3"],
    ["--lira", "4", "--from-scores"],
    ["--shadow", "--set", "training.epochs=1", "--runs", "x"],
    ["--shadow", ".", "--lira", "4", "--set", "training.epochs=1"],
    ["--shadows-of", "x", "--canaries", "--set", "training.epochs=1"],
    ["--canaries", "--canary-count", "1", "--canary-digits", "5", "--candidates", "99"],
    ["--canaries", "--from-scores"],
])  # fmt: skip
def test_an_option_that_is_read_is_taken(options):
    request_of(cli.parse(["attack", "run", *options]))


def test_several_runs_are_compared(capsys):
    assert cli.main(["attack", "run", "another", "--compare", "--out", "x.png"]) == 2
    assert "run is not a run directory" in capsys.readouterr().err


def test_a_shadow_that_has_not_ended_is_refused(tmp_path, capsys):
    target = run_at(tmp_path / "target")
    shadow = run_at(tmp_path / "shadow", has_ended=False)
    assert cli.main(["attack", str(target), "--shadow", str(shadow)]) == 2
    assert f"run `edp-mx train --resume {shadow}`" in capsys.readouterr().err


def test_a_shadow_is_one_run_or_configurations_laid_over_each_other(tmp_path, capsys):
    target, layer = run_at(tmp_path / "target"), tmp_path / "layer.yaml"
    layer.write_text("training: {epochs: many}")
    for shadows, said in (
        ([run_at(tmp_path / "shadow"), layer], "names several runs"),
        ([target / "config.yaml", layer], f"{layer}, line 1: training.epochs: 'many' is not"),
    ):
        options = [option for each in shadows for option in ("--shadow", str(each))]
        assert cli.main(["attack", str(target), *options]) == 2
        assert said in capsys.readouterr().err


def test_a_shadow_of_another_architecture_is_refused(tmp_path, capsys):
    bert = ExperimentConfig(model=BERTConfig())
    target, shadow = run_at(tmp_path / "target"), run_at(tmp_path / "shadow", bert)
    for run, other, said in (
        (target, shadow, "a bert model, and the attacked run a clc model"),
        (target, shadow / "config.yaml", "a bert model, and the attacked run a clc model"),
        (shadow, target, "a clc model, and the attacked run a bert model"),
    ):
        assert cli.main(["attack", str(run), "--shadow", str(other)]) == 2
        assert said in capsys.readouterr().err
