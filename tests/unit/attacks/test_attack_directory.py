"""What an attack leaves behind is whole, or what was there before."""

import numpy as np
import pytest
from support.membership import made_scores

from edp_mx.attacks.directory import write_outcome
from edp_mx.attacks.membership.thresholds import Guesses, threshold_attacks
from edp_mx.runs.run_directory import RunDirectory


def test_an_attack_that_is_no_json_leaves_the_old_one_whole(generator, tmp_path):
    scores = made_scores(generator, 20, gap=1.0)
    run = RunDirectory(tmp_path / "run")
    write_outcome(run, "threshold", threshold_attacks(scores), scores, facts={})
    folder = run.path / "attack-threshold"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert set(before) == {"attack.json", "guesses.csv"}
    guesses = [Guesses("loss", "says", scores.signals.loss)]
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_outcome(run, "threshold", guesses, scores, facts={"AUC": np.nan})
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
