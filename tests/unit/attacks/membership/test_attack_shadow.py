"""The paper's attack from scores to what it leaves behind, on made-up outputs."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score
from support.membership import made_scores

from edp_mx.attacks.directory import read_guesses
from edp_mx.attacks.membership.shadow_attack import attack_by_shadow
from edp_mx.config import dump_config, load_config
from edp_mx.errors import UserError
from edp_mx.runs.run_directory import RunDirectory

ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture
def sides(generator, tmp_path):
    """A run and its shadow on another corpus, with outputs as if both were overfit."""
    found = []
    for name, weights in (("atis_clc", "a"), ("snips_clc", "b")):
        run = RunDirectory(tmp_path / name)
        run.create(name, dump_config(load_config(ROOT / "configs" / f"{name}.yaml")))
        run.write("environment", {"num_workers": 1})
        found.append((run.path, made_scores(generator, 150, gap=1.5, weights=weights * 64)))
    return found


def attacked(sides):
    (path, scores), (shadow_path, shadow) = sides
    return attack_by_shadow(path, scores, shadow_path=shadow_path, shadow=shadow)


def test_what_lies_above_the_threshold_is_called_a_member(sides):
    outcome = attacked(sides)
    guessed = read_guesses(sides[0][0] / "attack-shadow")
    log_odds = guessed.scores["shadow classifier"]
    assert log_odds.min() < 0 and log_odds.max() > 1  # probabilities are neither
    (result,) = outcome["results"]
    expected = balanced_accuracy_score(guessed.is_member, log_odds > 0)
    assert result["balanced_accuracy"] == pytest.approx(expected) and expected > 0.65
    assert result["auc"]["value"] > 0.75 and result["says"].startswith("log-odds by")


@pytest.mark.parametrize("side", [0, 1])
def test_one_that_has_diverged_changes_nothing(sides, side):
    attacked(sides)
    folder = sides[0][0] / "attack-shadow"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    path, scores = sides[side]
    top = np.full_like(scores.signals.slot_top, np.nan)
    sides[side] = path, replace(scores, signals=scores.signals._replace(slot_top=top))
    with pytest.raises(UserError, match=r"has diverged \(its outputs for 300 of 300 utterances"):
        attacked(sides)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
