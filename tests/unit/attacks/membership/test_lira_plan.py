"""Who is in which shadow: sizes, repeats, and that the run's own split has no say."""

from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from support.refusals import one_sentence
from support.utterances import ids_of

from edp_mx.attacks.membership.lira import shadow as lira_shadow
from edp_mx.attacks.membership.lira.attack import attack_by_shadows_of, borrowed_plan
from edp_mx.attacks.membership.lira.plan import ShadowPlan, ensure_plan, is_known
from edp_mx.attacks.membership.lira.processes import read_shadow
from edp_mx.attacks.membership.lira.shadow import shadow_vocabulary
from edp_mx.attacks.membership.members import choose
from edp_mx.attacks.membership.scores import MembershipScores, Origin
from edp_mx.config import ExperimentConfig, dump_config, load_config
from edp_mx.data.config import DataConfig
from edp_mx.data.corpus import load_corpus
from edp_mx.data.strata import folded_text
from edp_mx.data.vocabulary import Vocabulary, VocabularyConfig
from edp_mx.dp.weights import write_arrays
from edp_mx.errors import UserError
from edp_mx.models.bert import BERTConfig
from edp_mx.runs.run_directory import RunDirectory

CONFIG = ExperimentConfig(data=DataConfig(corpus="communication", size=2500))
SHADOWS = 6


@pytest.fixture(scope="module")
def corpus():
    return load_corpus(CONFIG.data)


@pytest.fixture(scope="module")
def vocabulary(corpus):
    return Vocabulary.build(corpus.train)


def scores_for(corpus, vocabulary, size=0):
    """Scores of the corpus' own members and non-members; only their names matter here."""
    chosen = choose(corpus.train, corpus.test, corpus.validation, slots=vocabulary.slots,
                    intents=vocabulary.intents, seed=0, size=size)  # fmt: skip
    groups = (chosen.members, chosen.non_members, chosen.reference)
    everybody = [u for group in groups for u in group]
    group = np.repeat([0, 1, 2], [len(one) for one in groups])
    return MembershipScores(
        signals=None,
        is_member=group == 0,
        is_reference=group == 2,
        ids=tuple(u.id for u in everybody),
        intents=tuple(u.intent for u in everybody),
        origin=Origin(weights="w", corpus="communication", seed=5, is_balanced=False, size=size),
    )


def plan_in(folder, corpus, vocabulary, size=0, config=CONFIG):
    run = RunDirectory(folder / "run")
    run.write("vocabulary", vocabulary.to_json())
    run.write("split", ids_of(corpus.split, corpus.utterances))
    (run.path / "config.yaml").write_text(dump_config(config))
    scores = scores_for(corpus, vocabulary, size)
    return ensure_plan(run.path / "attack-lira", scores, config, SHADOWS), scores


@pytest.mark.parametrize("size", [0, 100])
def test_shadows_are_as_large_as_the_run_and_know_nothing_of_its_split(
    corpus, vocabulary, tmp_path, size
):
    plan, scores = plan_in(tmp_path, corpus, vocabulary, size)
    parts = [plan.part(corpus, vocabulary, k) for k in range(SHADOWS)]
    assert np.mean([len(part) for part in parts]) == pytest.approx(len(corpus.train), rel=0.05)
    members = {u.id for u in corpus.train}
    pools = [(plan.ids, plan.is_in)] + [(plan.other_ids, plan.others_in)] * (size > 0)
    for ids, is_in in pools:
        is_member = np.array([name in members for name in ids])
        shares = [is_in[side].mean() for side in (is_member, ~is_member)]
        assert shares[0] == pytest.approx(shares[1], abs=0.1)
    judged = set(plan.ids)
    assert judged == {i for i, aside in zip(scores.ids, scores.is_reference) if not aside}
    inside = Counter(u.id for part in parts for u in part if u.id in judged)
    assert set(inside.values()) == {SHADOWS // 2}


def test_repeats_go_with_their_text(corpus, vocabulary, tmp_path):
    plan, _ = plan_in(tmp_path, corpus, vocabulary)
    counts = Counter(folded_text(u) for u in corpus.utterances if is_known(u, vocabulary))
    assert max(counts.values()) > 1
    for number in range(SHADOWS):
        part = Counter(folded_text(u) for u in plan.part(corpus, vocabulary, number))
        assert all(part[text] == counts[text] for text in part)


def test_a_plan_is_kept_and_another_is_refused(corpus, vocabulary, tmp_path):
    plan, scores = plan_in(tmp_path, corpus, vocabulary)
    folder = tmp_path / "run" / "attack-lira"
    (folder / "shadow-003.npz").touch()
    again = ensure_plan(folder, scores, CONFIG, SHADOWS)
    for name in ("ids", "other_ids", "about"):
        assert getattr(again, name) == getattr(plan, name)
    np.testing.assert_array_equal(again.is_in, plan.is_in)
    np.testing.assert_array_equal(again.others_in, plan.others_in)
    with pytest.raises(UserError, match="holds shadows of other settings"):
        ensure_plan(folder, scores, CONFIG, SHADOWS + 1)
    np.savez(folder / "plan.npz", ids=np.array(["a"]))
    one_sentence("is of another version", ShadowPlan.read, folder)


def test_a_setting_that_changes_no_model_makes_no_other_plan(corpus, vocabulary, tmp_path):
    plan, scores = plan_in(tmp_path, corpus, vocabulary)
    folder = tmp_path / "run" / "attack-lira"
    (folder / "shadow-003.npz").touch()
    patient = replace(CONFIG, training=replace(CONFIG.training, watchdog_seconds=9.0))
    assert ensure_plan(folder, scores, patient, SHADOWS).ids == plan.ids
    faster = replace(CONFIG, training=replace(CONFIG.training, learning_rate=1.0))
    one_sentence("holds shadows of other settings", ensure_plan, folder, scores, faster, SHADOWS)


def test_a_plan_without_shadows_makes_way(corpus, vocabulary, tmp_path):
    """A command that was wrong, and is given again right, finds nothing in its way."""
    _, scores = plan_in(tmp_path, corpus, vocabulary)
    folder = tmp_path / "run" / "attack-lira"
    (folder / "shadow-000.log").touch()  # of one that failed
    other = replace(CONFIG, training=replace(CONFIG.training, epochs=2))
    plan = ensure_plan(folder, scores, other, SHADOWS + 2)
    assert plan.shadows == ShadowPlan.read(folder).shadows == SHADOWS + 2
    assert load_config(folder / "config.yaml") == other
    np.savez(folder / "plan.npz", ids=np.array(["a"]))
    assert ensure_plan(folder, scores, CONFIG, SHADOWS).shadows == SHADOWS


def test_a_shadow_belongs_to_the_plan_that_it_was_trained_by(
    corpus, vocabulary, tmp_path, monkeypatch
):
    plan, scores = plan_in(tmp_path, corpus, vocabulary)
    folder = tmp_path / "run" / "attack-lira"

    def train(*_):
        other = replace(CONFIG, training=replace(CONFIG.training, epochs=2))
        ensure_plan(folder, scores, other, SHADOWS)  # another attack begins meanwhile
        return prepared

    nothing = np.zeros(len(plan.ids))
    signals = SimpleNamespace(log_odds=nothing, loss=nothing)
    prepared = SimpleNamespace(model=None, vocabulary=vocabulary, stored=lambda each: each)
    monkeypatch.setattr(lira_shadow, "prepare_corpus", lambda *_, **__: prepared)
    monkeypatch.setattr(lira_shadow, "train_prepared", train)
    monkeypatch.setattr(lira_shadow, "compute_signals", lambda *_, **__: signals)
    lira_shadow.train_shadow(folder, 0, None)
    one_sentence("of another plan", read_shadow, folder, 0, ShadowPlan.read(folder))


def test_another_corpus_is_noticed(corpus, vocabulary, tmp_path):
    plan, _ = plan_in(tmp_path, corpus, vocabulary)
    small = load_corpus(replace(CONFIG.data, size=300))
    one_sentence("communication has changed", plan.part, small, vocabulary, 0)


def test_a_shadows_words_are_its_own_and_its_labels_the_runs(corpus, vocabulary):
    small = load_corpus(replace(CONFIG.data, size=200))
    own = shadow_vocabulary(CONFIG, small, vocabulary)
    assert set(own.words[2:]) == {t.lower() for u in small.train for t in u.tokens}
    assert (own.slots, own.intents) == (vocabulary.slots, vocabulary.intents)
    assert own.slot_id(vocabulary.slots[-1]) == len(vocabulary.slots) - 1
    public = replace(CONFIG, data=replace(CONFIG.data, vocabulary=VocabularyConfig("sample")))
    words = {len(shadow_vocabulary(public, one, vocabulary).words) for one in (small, corpus)}
    assert len(words) == 1  # a public list is the same for all


def test_a_shadow_reads_the_words_of_the_run_that_it_starts_from(corpus, vocabulary, tmp_path):
    plan_in(tmp_path, corpus, vocabulary)
    start = tmp_path / "run"
    write_arrays(start / "weights.npz", {"intent_dense_bias": np.zeros(2)})
    small = load_corpus(replace(CONFIG.data, size=200))
    labels = Vocabulary.build(small.train)
    config = replace(
        CONFIG,
        data=replace(CONFIG.data, vocabulary=VocabularyConfig("checkpoint")),
        model=replace(CONFIG.model, start_from=str(start)),
    )
    own = shadow_vocabulary(config, small, labels)
    assert own.words == vocabulary.words != labels.words
    assert (own.slots, own.intents) == (labels.slots, labels.intents)


def test_shadows_are_lent_to_runs_on_the_same_split_that_judge_nobody_else(
    corpus, vocabulary, tmp_path
):
    few, _ = plan_in(tmp_path / "few", corpus, vocabulary, size=100)
    _, everybody = plan_in(tmp_path / "all", corpus, vocabulary)
    run, lender = tmp_path / "all" / "run", tmp_path / "few" / "run"
    assert borrowed_plan(run, lender).ids == few.ids
    with pytest.raises(UserError, match="shadows of .* know .* of the .* utterances that are"):
        attack_by_shadows_of(run, everybody, lender=lender)
    one_sentence("lacks shadows: finish", attack_by_shadows_of, lender, everybody, lender=run)
    one_sentence("give --lira 6", borrowed_plan, lender, lender, 4)
    plan_in(tmp_path / "bert", corpus, vocabulary, config=replace(CONFIG, model=BERTConfig()))
    with pytest.raises(UserError, match="each is a bert model, and the attacked run a clc model"):
        borrowed_plan(run, tmp_path / "bert" / "run")
    other = replace(CONFIG, data=replace(CONFIG.data, split_seed=1))
    plan_in(tmp_path / "other", corpus, vocabulary, config=other)
    with pytest.raises(UserError, match="on the same corpus with the same split"):
        borrowed_plan(tmp_path / "other" / "run", lender)
    with pytest.raises(UserError, match="edp-mx attack RUN --lira K"):
        (run / "attack-lira" / "plan.npz").unlink()
        borrowed_plan(lender, run)
