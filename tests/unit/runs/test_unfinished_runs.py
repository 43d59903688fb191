"""Runs without a model: each command says what is the matter and what to do."""

from support.refusals import one_sentence

from edp_mx.reports.summary import compare
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runs.trained_run import load_run


def test_a_run_that_never_began_or_has_not_ended_says_so(tmp_path):
    run = RunDirectory(tmp_path / "run")
    one_sentence("is not a run directory", load_run, run.path)
    run.create("run", "name: run\ndata: {corpus: health}\n")
    one_sentence(r"never began to train.*rank_0\.log.*--resume .*run`$", load_run, run.path)
    run.write("vocabulary", {})
    one_sentence(r"has not trained to its end.*--resume .*run`$", load_run, run.path)
    one_sentence(r"has no results\.json: it has not trained to its end", compare, [run])
    run.write("results", {})
    one_sentence(r"run has lost weights\.npz: restore it, or train anew", load_run, run.path)
    (run.path / "vocabulary.json").unlink()
    one_sentence(r"has lost weights\.npz and vocabulary\.json: restore", load_run, run.path)
