"""Canaries with numbers in them, the default shadow, and what LiRA's shadows may differ in."""

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from support.membership import made_scores
from support.refusals import one_sentence

from edp_mx.attacks import outcomes
from edp_mx.attacks.canaries.numbers import (
    DIGITS,
    SLOT,
    CanarySettings,
    check_digits,
    draw_canaries,
    slot_for,
    with_canaries,
)
from edp_mx.attacks.membership.lira.attack import check_shadow_settings
from edp_mx.attacks.membership.shadow_attack import OTHER_CORPUS, attack_by_shadow, shadow_config
from edp_mx.attacks.request import AttackRequest
from edp_mx.config import ExperimentConfig, dump_config
from edp_mx.data.config import DataConfig
from edp_mx.data.corpus import Corpus, load_corpus
from edp_mx.data.fingerprint import keyed
from edp_mx.data.labels import LabelsConfig
from edp_mx.data.splits import PARTS
from edp_mx.data.vocabulary import Vocabulary, VocabularyConfig
from edp_mx.errors import UserError
from edp_mx.runs.run_directory import RunDirectory

CONFIG = ExperimentConfig(data=DataConfig(corpus="communication", size=300))


@pytest.fixture(scope="module")
def corpus():
    return load_corpus(CONFIG.data)


def test_canaries_hold_different_random_numbers(corpus):
    settings = CanarySettings(count=4, digits=6, candidates=50, seed=2)
    canaries = draw_canaries(corpus, CONFIG, settings)
    assert [canary.repeats for canary in canaries] == [1] * 4 + [10] * 4 + [100] * 4
    words = {token for utterance in corpus.train for token in utterance.tokens}
    prefixes = {canary.utterance.tokens[:3] for canary in canaries}  # random words before them
    assert len(prefixes) == 12 and {word for prefix in prefixes for word in prefix} <= words
    assert len({canary.utterance.intent for canary in canaries}) > 3
    numbers = ["".join(canary.utterance.tokens[-6:]) for canary in canaries]
    assert len(set(numbers)) == 12 and set("".join(numbers)) == set(DIGITS)
    for canary, number in zip(canaries, numbers):
        assert canary.utterance.slots == ("O", "O", "O", f"B-{SLOT}", *[f"I-{SLOT}"] * 5)
        assert len(set(canary.others)) == 50 and number not in canary.others
        other = canary.with_number(canary.others[0])
        assert other.tokens == (*canary.utterance.tokens[:3], *canary.others[0])
        assert (other.slots, other.intent) == (canary.utterance.slots, canary.utterance.intent)
    again = draw_canaries(corpus, CONFIG, settings)
    assert again == canaries
    assert draw_canaries(corpus, CONFIG, replace(settings, seed=3)) != canaries


DRAW = """
from edp_mx.attacks.canaries.numbers import CanarySettings, draw_canaries
from edp_mx.config import ExperimentConfig
from edp_mx.data.config import DataConfig
from edp_mx.data.corpus import Corpus, load_corpus

config = ExperimentConfig(data=DataConfig(corpus="communication", size=300))
print(draw_canaries(load_corpus(config.data), config, CanarySettings(candidates=10)))
"""


def test_runs_are_compared_on_the_same_canaries(corpus):
    """Of another process, too, whose sets of words are in another order."""
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    drawn = subprocess.run(
        [sys.executable, "-c", DRAW], env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert drawn.strip() == str(draw_canaries(corpus, CONFIG, CanarySettings(candidates=10)))


def test_few_numbers_are_all_compared(corpus):
    settings = CanarySettings(repeats=(1,), count=2, digits=2, candidates=99)
    for canary in draw_canaries(corpus, CONFIG, settings):
        number = "".join(canary.utterance.tokens[-2:])
        assert sorted([*canary.others, number]) == [f"{n:02d}" for n in range(100)]


def test_canaries_are_trained_on_as_often_as_they_say_and_nothing_else_moves(corpus):
    canaries = draw_canaries(corpus, CONFIG, CanarySettings(count=1))
    inside = with_canaries(corpus, canaries)
    added = inside.train[len(corpus.train) :]
    assert [added.count(canary.utterance) for canary in canaries] == [1, 10, 100]
    assert len(added) == 111 and len({u.id for u in inside.utterances}) == len(inside.utterances)
    for part in PARTS:
        before, after = getattr(corpus, part), getattr(inside, part)
        assert after[: len(before)] == before
    assert len(inside.validation) == len(corpus.validation)


def test_the_slot_is_one_that_the_labels_have(corpus):
    assert slot_for(corpus.train, is_free=False) == SLOT  # the stand-in has it
    health = load_corpus(DataConfig(corpus="health", size=300)).train
    assert slot_for(health, is_free=True) == SLOT
    named = slot_for(health, is_free=False)
    assert any(f"I-{named}" in utterance.slots for utterance in health)


def test_without_a_slot_of_several_tokens_in_the_labels_a_number_is_outside_of_all(corpus):
    outside = [replace(u, slots=("O",) * len(u.tokens)) for u in corpus.utterances]
    bare = Corpus(corpus.name, outside, corpus.split)
    listed = replace(CONFIG, data=replace(CONFIG.data, labels=LabelsConfig("sample")))
    for canary in draw_canaries(bare, listed, CanarySettings(count=1, candidates=10)):
        assert set(canary.utterance.slots) == {"O"}
    for canary in draw_canaries(bare, CONFIG, CanarySettings(count=1, candidates=10)):
        assert f"B-{SLOT}" in canary.utterance.slots


def test_where_users_are_named_each_canary_is_one_more(corpus):
    named = [replace(u, user=f"u{i % 7}") for i, u in enumerate(corpus.utterances)]
    of_users = Corpus(corpus.name, named, corpus.split)
    canaries = draw_canaries(of_users, CONFIG, CanarySettings(count=2, candidates=10))
    assert len({canary.utterance.user for canary in canaries} - {u.user for u in named}) == 6
    assert not any(c.utterance.user for c in draw_canaries(corpus, CONFIG, CanarySettings(count=1)))


def test_impossible_canaries_are_refused(corpus):
    for wrong in ({"count": 0}, {"digits": 0}, {"candidates": 5}, {"repeats": (0,)}):
        one_sentence("--canary-count", CanarySettings, **wrong)
    for wrong in ({"count": 20, "digits": 1}, {"count": 400, "digits": 3}, {"digits": 19}):
        one_sentence("--canary-digits", CanarySettings, **wrong)
    most = draw_canaries(corpus, CONFIG, CanarySettings(count=100, digits=3, candidates=10))
    assert len({each.utterance.tokens[-3:] for each in most}) == 300
    longest = draw_canaries(corpus, CONFIG, CanarySettings(count=1, digits=18, candidates=10))
    assert all(len(each.others) == 10 for each in longest)


def test_a_vocabulary_without_digits_shows_nothing(corpus):
    with_digits = with_canaries(corpus, draw_canaries(corpus, CONFIG, CanarySettings(count=2)))
    check_digits(Vocabulary.build(with_digits.train))
    bare = [u for u in corpus.train if not any(c.isdigit() for t in u.tokens for c in t)]
    one_sentence("cannot tell all digits apart", check_digits, Vocabulary.build(bare))


@pytest.mark.parametrize("name", sorted(OTHER_CORPUS))
def test_the_default_shadow_is_the_same_model_on_another_corpus(name):
    config = ExperimentConfig(data=DataConfig(corpus=name))
    config = replace(config, training=replace(config.training, epochs=7))
    shadow = shadow_config(config)
    assert shadow.data.corpus == OTHER_CORPUS[name] != name
    public = ("layer_scales", "vocabulary", "start", "lengths")  # its corpus is nobody's secret
    assert (shadow.model, shadow.training, shadow.privacy) == (
        config.model, config.training, replace(config.privacy, assume_public=public))  # fmt: skip


def test_a_shadow_takes_no_lists_that_were_made_for_the_run():
    data = DataConfig(
        corpus="atis",
        path="somewhere/atis",
        labels=LabelsConfig("file", "elsewhere/labels.json"),
        vocabulary=VocabularyConfig("file", "elsewhere/words.txt"),
        size=100,
    )
    shadow = shadow_config(ExperimentConfig(data=data)).data
    assert (shadow.path, shadow.size, shadow.labels) == (None, None, LabelsConfig())
    assert shadow.vocabulary == data.vocabulary  # words are of a language, not of a corpus
    public = VocabularyConfig("sample")
    standin = DataConfig(corpus="health", vocabulary=public, labels=LabelsConfig("sample"))
    assert shadow_config(ExperimentConfig(data=standin)).data.vocabulary == public
    with pytest.raises(UserError, match="mine has no default shadow corpus"):
        shadow_config(ExperimentConfig(data=DataConfig(corpus="mine", path="x")))


def test_liras_shadows_may_be_smaller_but_of_the_same_utterances():
    smaller = replace(CONFIG, model=replace(CONFIG.model, hidden_size=8))
    data = replace(CONFIG.data, embeddings=replace(CONFIG.data.embeddings, dimension=5))
    check_shadow_settings(replace(smaller, data=data), CONFIG)
    for change in ({"size": 200}, {"split_seed": 1}, {"corpus": "health"}):
        with pytest.raises(UserError, match="train on the run's own utterances"):
            check_shadow_settings(replace(CONFIG, data=replace(CONFIG.data, **change)), CONFIG)


def test_a_shadow_with_the_run_s_training_part_is_refused_wherever_that_lies(generator, tmp_path):
    scores = made_scores(generator, 150, gap=1.0, reference=40)
    other = replace(scores, origin=replace(scores.origin, weights="b" * 64))
    for name, path in (("run", None), ("shadow", str(tmp_path))):
        run = RunDirectory(tmp_path / name)
        run.create(name, dump_config(ExperimentConfig(data=DataConfig(path=path))))
        run.write("environment", {"num_workers": 1, "fingerprints": {"train": keyed("ab")}})
    with pytest.raises(UserError, match="has the training part of the attacked run"):
        attack_by_shadow(tmp_path / "run", scores, shadow_path=tmp_path / "shadow", shadow=other)


@pytest.mark.parametrize(("mechanism", "count"), [("edp_sgd", 8), ("dp_sgd", 1), ("none", 1)])
def test_a_model_of_one_worker_has_the_micro_batches_of_all(mechanism, count, tmp_path):
    run = RunDirectory(tmp_path / "run")
    k = 2 if mechanism == "edp_sgd" else 1
    unit = "utterance" if mechanism == "dp_sgd" else "micro_batch"
    privacy = replace(CONFIG.privacy, mechanism=mechanism, unit=unit, micro_batches_per_worker=k)
    run.create("run", dump_config(replace(CONFIG, privacy=privacy)))
    run.write("environment", {"num_workers": 4})
    config = outcomes._for_one_worker(run, AttackRequest(run.path))
    assert config.privacy.micro_batches_per_worker == count


def test_a_shadow_on_the_runs_own_split_is_refused(generator, tmp_path):
    """It would tell the attack who is a member; on a split of its own it knows nothing of it."""
    for name in ("run", "shadow", "elsewhere"):
        run = RunDirectory(tmp_path / name)
        data = DataConfig(corpus="health" if name == "elsewhere" else "communication")
        run.create(name, dump_config(ExperimentConfig(data=data)))
        run.write("environment", {"num_workers": 1})
    run, shadow, elsewhere = (tmp_path / name for name in ("run", "shadow", "elsewhere"))
    scores = made_scores(generator, 150, gap=1.0, reference=40)
    same = made_scores(generator, 150, gap=1.0, reference=40, weights="b" * 64)
    with pytest.raises(UserError, match="own split .300 of 300 utterances are on the same side"):
        attack_by_shadow(run, scores, shadow_path=shadow, shadow=same)
    names = np.array(same.ids)
    swapped = replace(same, ids=(*names[150:300], *names[:150], *names[300:]))
    with pytest.raises(UserError, match="own split .0 of 300"):
        attack_by_shadow(run, scores, shadow_path=shadow, shadow=swapped)
    attack_by_shadow(run, scores, shadow_path=elsewhere, shadow=same)
    drawn = replace(same, ids=(*generator.permutation(names[:300]), *names[300:]))
    attack_by_shadow(run, scores, shadow_path=shadow, shadow=drawn)
    with pytest.raises(UserError, match="has the weights of the attacked run"):
        attack_by_shadow(run, scores, shadow_path=elsewhere, shadow=scores)
