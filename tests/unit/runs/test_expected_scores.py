"""What to expect between measured runs: straight lines in log n and log ε, and no further."""

import math

import pytest
from support.records import record_of

from edp_mx.errors import UserError
from edp_mx.runs.expected_scores import exact_runs, expect, nearest
from edp_mx.runs.measurements import measurements
from edp_mx.runs.recipe import Recipe


def plane(n, epsilon):
    """A SER that is linear in log n and log ε."""
    return 0.9 - 0.05 * math.log(n / 1000) - 0.1 * math.log(epsilon)


def runs_of(*records):
    return exact_runs(measurements(records))


GRID = [record_of(n=n, epsilon=e, ser=plane(n, e)) for n in (1000, 4000) for e in (1.0, 3.0, 8.0)]


@pytest.mark.parametrize("n, epsilon", [(1000, 1.0), (4000, 8.0), (1500, 1.7), (3999, 5.0)])
def test_between_measurements_lies_a_plane(n, epsilon):
    (found,) = expect(runs_of(*GRID), num_examples=n, epsilon=epsilon)
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
    (found,) = expect(runs_of(*GRID), num_examples=n, epsilon=epsilon)
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
        expect(runs_of(*GRID), num_examples=n, epsilon=epsilon)


def test_two_corpora_do_not_stand_in_for_each_other():
    apart = [record_of("atis", n=1000, epsilon=1.0), record_of("snips", n=9000, epsilon=8.0)]
    with pytest.raises(UserError, match="no corpus was measured near 1,000 utterances and ε = 8"):
        expect(runs_of(*apart), num_examples=1000, epsilon=8.0)
    (found,) = expect(runs_of(*apart), num_examples=8000, epsilon=8.0)
    assert found.corpus == "snips"


def test_the_better_family_of_a_corpus_comes_first_and_only_exact_runs_count():
    both = [record_of(family="clc", ser=0.6), record_of(family="bert", ser=0.2)]
    others = [
        record_of(mechanism="edp_sgd", ser=0.01),
        record_of("snips", ser=0.01, **{"privacy.adjacency": "replace_one"}),
        record_of("snips", ser=0.01, **{"privacy.layer_scales": "dp_release"}),
    ]
    found = expect(runs_of(*both, *others), num_examples=1000, epsilon=8.0)
    assert [(each.corpus, each.family) for each in found] == [("atis", "bert"), ("atis", "clc")]


def test_the_nearest_run_gives_the_settings_and_its_share_of_the_utterances():
    runs = runs_of(*GRID, record_of("snips", n=2000, epsilon=8.0, workers=3))
    source = nearest(runs, num_examples=2500, epsilon=7.0)
    assert (source.corpus, source.n, source.epsilon) == ("snips", 2000, 8.0)
    recipe = Recipe.of(source, num_examples=2500, epsilon=7.0)
    assert recipe.batch_size == 1251  # half of them, and a multiple of three workers
    said = recipe.calibration().split()
    wanted = ["--num-examples", "2500", "privacy.target_epsilon=7.0", "training.epochs=10"]
    assert set(wanted) < set(said) and f"training.batch_size={recipe.batch_size}" in said
