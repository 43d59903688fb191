"""A model that was overfit on purpose: what every attack must see, and what none may."""

import numpy as np
import pytest
from support.commands import QUICKSTART, read

from edp_mx.attacks.membership.classifiers import learn_classifier
from edp_mx.attacks.membership.lira.likelihood import lira_attacks
from edp_mx.attacks.membership.lira.plan import ShadowPlan
from edp_mx.attacks.membership.lira.processes import read_shadow
from edp_mx.attacks.membership.roc import area, roc_curve
from edp_mx.attacks.membership.run_scores import compute_signals, saved_scores
from edp_mx.attacks.membership.scores import MembershipScores, Origin
from edp_mx.attacks.membership.thresholds import Guesses, threshold_attacks
from edp_mx.cli import main
from edp_mx.data.strata import folded_text
from edp_mx.data.synthetic import make_utterances
from edp_mx.runs.build import encode_part
from edp_mx.runs.trained_run import load_run

# 500 training utterances, 100 epochs, no dropout; small, so that ten of them take five minutes.
SETTINGS = ["data.size=1112", "data.embeddings.dimension=32", "model.hidden_size=32",
            "model.character_filters=8", "model.dropout=0", "training.epochs=100",
            "training.batch_size=64", "training.learning_rate=0.005"]  # fmt: skip
SHADOWS = 8
FRESH = 6000  # utterances that no model saw: an AUC of them has a standard deviation of 0.0075

pytestmark = [pytest.mark.slow, pytest.mark.timeout(5400)]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The overfit run, attacked in all ways, and its shadow on another corpus."""
    folder = tmp_path_factory.mktemp("overfit")
    for corpus in ("communication", "health"):
        arguments = ["train", str(QUICKSTART), "--run", str(folder / corpus), "--set", *SETTINGS]
        assert main([*arguments, f"data.corpus={corpus}"]) == 0
    target, shadow = folder / "communication", folder / "health"
    assert len(read(target, "split")["train"]) == 500
    arguments = ["attack", str(target), "--shadow", str(shadow), "--lira", str(SHADOWS)]
    assert main([*arguments, "--jobs", "1"]) == 0
    return target, shadow


@pytest.fixture(scope="module")
def fresh(runs):
    """The run's outputs for utterances of the same grammar, of which it saw none."""
    trained = load_run(runs[0])
    seen = {folded_text(u) for part in ("train", "validation", "test") for u in trained.part(part)}
    others = {folded_text(u): u for u in make_utterances("communication", size=40_000, seed=99)}
    utterances = [u for text, u in others.items() if text not in seen][:FRESH]
    assert len(utterances) == FRESH
    signals = compute_signals(
        trained.model,
        encode_part(trained.config, utterances, trained.vocabulary, "fresh"),
        batch_size=256,
        progress=lambda one, *_: one,
    )
    is_member = np.random.default_rng(0).permutation(FRESH) < FRESH // 2
    return MembershipScores(
        signals=signals,
        is_member=is_member,
        is_reference=np.zeros(FRESH, bool),
        ids=tuple(f"fresh/{i}" for i in range(FRESH)),
        intents=tuple(u.intent for u in utterances),
        origin=Origin(weights="", corpus="communication", seed=0, is_balanced=False),
    )


@pytest.fixture(scope="module")
def shadows(runs):
    """The plan, and each shadow's outputs for those who are judged."""
    folder = runs[0] / "attack-lira"
    plan = ShadowPlan.read(folder)
    return plan, [read_shadow(folder, k, plan) for k in range(SHADOWS)]


def auc(scores, labels):
    return area(roc_curve(scores, labels))


def measured(run, attack):
    attacked = read(run / f"attack-{attack}", "attack")
    return {result["name"]: result["auc"]["value"] for result in attacked["results"]}


def classifier_of(shadow):
    scores = saved_scores(shadow)
    return learn_classifier(scores.judged_signals, scores.labels, seed=0)


def test_every_attack_sees_through_it(runs):
    target, _ = runs
    assert measured(target, "threshold")["loss"] >= 0.8
    assert measured(target, "lira")["LiRA online"] >= 0.8
    assert measured(target, "lira")["LiRA offline"] >= 0.8
    assert measured(target, "shadow")["shadow classifier"] >= 0.65


def test_nothing_is_seen_where_neither_half_was_trained_on(runs, fresh):
    for one in threshold_attacks(fresh):
        assert auc(one.scores, fresh.labels) == pytest.approx(0.5, abs=0.03), one.name
    says = classifier_of(runs[1]).log_odds(fresh.signals)
    assert auc(says, fresh.labels) == pytest.approx(0.5, abs=0.03)


def test_liras_shadows_know_their_own_members_and_not_the_runs(runs, shadows):
    """Each shadow in the run's place, by the others: who is in the run is news to it."""
    plan, found = shadows
    scores = saved_scores(runs[0])
    own, of_run = [], []
    for k, one in enumerate(found):
        target = MembershipScores(
            signals=scores.judged_signals._replace(log_odds=one["log_odds"], loss=one["loss"]),
            is_member=scores.labels,
            is_reference=np.zeros(len(plan.ids), bool),
            ids=plan.ids,
            intents=plan.ids,
            origin=scores.origin,
        )
        rest = [j for j in range(SHADOWS) if j != k]
        log_odds, losses = (
            np.stack([found[j][key] for j in rest], axis=1) for key in ("log_odds", "loss")
        )
        guesses = lira_attacks(target, log_odds, losses, plan.is_in[:, rest])[:3]
        own.append([auc(guess.scores, plan.is_in[:, k]) for guess in guesses])
        of_run.append([auc(guess.scores, scores.labels) for guess in guesses])
    assert np.mean(own, axis=0).min() >= 0.8
    assert np.mean(of_run, axis=0) == pytest.approx(0.5, abs=0.03)


def test_nothing_is_seen_with_shuffled_labels(runs, shadows):
    """The mean over fifty shuffles: of one alone, 0.03 is no more than 1.6 deviations."""
    scores, (plan, found) = saved_scores(runs[0]), shadows
    log_odds, losses = (
        np.stack([one[key] for one in found], axis=1) for key in ("log_odds", "loss")
    )
    guesses = threshold_attacks(scores) + lira_attacks(scores, log_odds, losses, plan.is_in)
    says = classifier_of(runs[1]).log_odds(scores.judged_signals)
    guesses.append(Guesses("shadow classifier", "the paper's attack", says))
    generator = np.random.default_rng(3)
    for one in guesses:
        found_aucs = [auc(one.scores, generator.permutation(scores.labels)) for _ in range(50)]
        assert np.mean(found_aucs) == pytest.approx(0.5, abs=0.03), one.name
        assert max(found_aucs) < 0.6
