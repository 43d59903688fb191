"""What to expect between measured runs: straight lines in log n and log ε, and no further."""

import math

import pytest
from support.records import changed, record_of

from edp_mx.errors import UserError
from edp_mx.runs.expected_scores import exact_runs, expect, nearest
from edp_mx.runs.file_types import Labels
from edp_mx.runs.recipe import Recipe
from edp_mx.runs.wanted import LIKE, OTHER, SAME, StartKind, Wanted


def plane(n, epsilon):
    """A SER that is linear in log n and log ε."""
    return 0.9 - 0.05 * math.log(n / 1000) - 0.1 * math.log(epsilon)


def runs_of(*records):
    return exact_runs(records)


def expected(runs, *, num_examples, epsilon):
    return expect(runs, Wanted(num_examples, epsilon))


GRID = [record_of(n=n, epsilon=e, ser=plane(n, e)) for n in (1000, 4000) for e in (1.0, 3.0, 8.0)]


@pytest.mark.parametrize("n, epsilon", [(1000, 1.0), (4000, 8.0), (1500, 1.7), (3999, 5.0)])
def test_between_measurements_lies_a_plane(n, epsilon):
    (found,) = expected(runs_of(*GRID), num_examples=n, epsilon=epsilon)
    assert found.scores["ser"] == pytest.approx(plane(n, epsilon))
    assert found.scores["slot_f1"] == pytest.approx(1 - plane(n, epsilon))
    assert not found.remarks
    assert len(found.points) == {(1000, 1.0): 1, (4000, 8.0): 1}.get((n, epsilon), 4)


@pytest.mark.parametrize(
    "n, epsilon, at, remark",
    [
        (600, 3.0, (1000, 3.0), "more utterances (1,000): expect worse"),
        (7000, 3.0, (4000, 3.0), "fewer utterances (4,000): expect better"),
        (1000, 0.7, (1000, 1.0), "a larger ε (1.0): expect worse"),
        (1000, 11.0, (1000, 8.0), "a smaller ε (8.0): expect better"),
    ],
)
def test_a_little_outside_the_nearest_stands_with_a_remark(n, epsilon, at, remark):
    (found,) = expected(runs_of(*GRID), num_examples=n, epsilon=epsilon)
    assert found.scores["ser"] == pytest.approx(plane(*at)) and remark in found.remarks[0]


@pytest.mark.parametrize(
    "n, epsilon, refusal",
    [
        (499, 3.0, "499 utterances are too far from the 1,000 to 4,000"),
        (8001, 3.0, "8,001 utterances are too far"),
        (1000, 0.66, "ε = 0.66 is too far from the 1 to 8"),
        (1000, 12.1, "ε = 12.1 is too far"),
    ],
)
def test_far_outside_nothing_is_told(n, epsilon, refusal):
    with pytest.raises(UserError, match=refusal):
        expected(runs_of(*GRID), num_examples=n, epsilon=epsilon)


def test_two_corpora_do_not_stand_in_for_each_other():
    apart = [record_of("atis", n=1000, epsilon=1.0), record_of("snips", n=9000, epsilon=8.0)]
    with pytest.raises(UserError, match="no corpus was measured near 1,000 utterances and ε = 8"):
        expected(runs_of(*apart), num_examples=1000, epsilon=8.0)
    (found,) = expected(runs_of(*apart), num_examples=8000, epsilon=8.0)
    assert found.corpus == "snips"


def test_each_start_has_its_own_expectation_and_only_exact_runs_count():
    both = [record_of(family="clc", ser=0.6), record_of(family="bert", ser=0.2)]
    others = [
        record_of(mechanism="edp_sgd", ser=0.01),
        record_of("snips", ser=0.01, **{"privacy.adjacency": "replace_one"}),
        record_of("snips", ser=0.01, **{"privacy.layer_scales": "dp_release"}),
    ]
    found = expected(runs_of(*both, *others), num_examples=1000, epsilon=8.0)
    assert [(each.corpus, each.start.family) for each in found] == [
        ("atis", "bert"), ("atis", "clc")]  # fmt: skip


def labelled(corpus, intents, slots, **changes):
    return changed(record_of(corpus, **changes), labels={"intents": intents, "slots": slots})


def classified(corpus, intents, right):
    """The record of a classification, as Banking77's are."""
    record = record_of(corpus, **{"task": "intent_slot"})
    scores = {"accuracy": right, "macro_f1": right}
    settings = {**record.settings, "task": "classification"}
    labels = {"intents": intents, "slots": 0}
    return changed(record, labels=labels, test=scores, validation=scores, settings=settings)


def test_only_corpora_with_about_as_many_labels_are_told_the_nearest_first():
    runs = runs_of(
        labelled("snips", 7, 39), labelled("atis", 26, 83), record_of("unknown"),
        classified("banking77", 77, 0.9), classified("clinc150", 151, 0.8),
    )  # fmt: skip
    found = expect(runs, Wanted(1000, 8.0, Labels(140, 0)))
    assert [each.corpus for each in found] == ["clinc150", "banking77"]
    assert found[0].scores == pytest.approx({"ser": 0.2, "intent_accuracy": 0.8})
    assert [each.corpus for each in expect(runs, Wanted(1000, 8.0, Labels(10, 50)))] == [
        "snips", "atis"]  # fmt: skip
    with pytest.raises(UserError, match="900 intents and no slots.*nearest is clinc150 .151 int"):
        expect(runs, Wanted(1000, 8.0, Labels(900, 0)))


def test_the_same_start_comes_before_one_of_its_sizes_and_any_other():
    sizes = {"model.num_layers": 6, "model.hidden_size": 384}
    records = [
        record_of("snips", ser=0.1, **{"model.start_from": "sha256:small"}),
        record_of("snips", ser=0.2, **{"model.start_from": "sha256:warm", **sizes}),
        record_of("snips", ser=0.3, **{"model.checkpoint": "sha256:minilm", **sizes}),
        record_of("snips", ser=0.4, **sizes),
    ]
    start = StartKind("bert", (6, 384), "sha256:minilm")
    found = expect(exact_runs(records, start), Wanted(1000, 8.0, start=start))
    assert [(each.rank, each.scores["ser"]) for each in found] == [
        (SAME, 0.3), (LIKE, 0.2), (OTHER, 0.1), (OTHER, 0.4)]  # fmt: skip


def test_the_nearest_run_gives_the_settings_and_its_share_of_the_utterances():
    runs = runs_of(*GRID, record_of("snips", n=2000, epsilon=8.0, workers=3))
    source = nearest(runs, num_examples=2500, epsilon=7.0)
    assert (source.corpus, source.n, source.epsilon) == ("snips", 2000, 8.0)
    recipe = Recipe.of(source, num_examples=2500, epsilon=7.0)
    assert recipe.batch_size == 1251  # half of them, and a multiple of three workers
    said = recipe.calibration().split()
    wanted = ["--num-examples", "2500", "privacy.target_epsilon=7.0", "training.epochs=10"]
    assert set(wanted) < set(said) and f"training.batch_size={recipe.batch_size}" in said
