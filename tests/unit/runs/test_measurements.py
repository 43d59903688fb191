"""What records say together: which are compared, which are chosen, what seeds say."""

import math

import pytest
from support.records import INFINITE, changed, record_of

from edp_mx.runs.measurements import chosen, epsilon_of, measurements


def test_seeds_are_a_mean_and_a_range_and_other_settings_are_not():
    seeds = [record_of(ser=ser, **{"training.seed": i}) for i, ser in enumerate((0.3, 0.2, 0.4))]
    other = record_of(ser=0.1, **{"training.epochs": 99})
    elsewhere = record_of(ser=0.1, workers=2)
    several, *single = sorted(measurements([*seeds, other, elsewhere]), key=lambda m: -m.validation)
    assert several.test["ser"] == pytest.approx((0.3, 0.2, 0.4))
    assert several.test["slot_f1"] == pytest.approx((0.7, 0.6, 0.8))
    assert len(several.records) == 3 and [len(each.records) for each in single] == [1, 1]


def test_a_seed_that_was_trained_twice_counts_twice_unless_the_run_repeated_itself():
    first, second = (record_of(ser=ser, **{"training.seed": 0}) for ser in (0.3, 0.2))
    third = record_of(ser=0.4, **{"training.seed": 1})
    repeated = changed(second, date="2030-01-01", seconds=9.0)
    (found,) = measurements([second, first, third, repeated])
    assert found.test["ser"] == pytest.approx((0.3, 0.2, 0.4)) and len(found.records) == 3
    assert found.validation == pytest.approx(0.3)
    same_on_test = changed(second, validation={**second.validation, "slot_f1": 0.5})
    (found,) = measurements([second, same_on_test])
    assert len(found.records) == 2


def test_loop_and_ghost_clipping_are_one_measurement_and_rounded_products_another():
    runs = [
        record_of(ser=ser, **{"privacy.clipping": kind})
        for ser, kind in ((0.2, "loop"), (0.3, "ghost"), (0.4, "ghost_bfloat16"))
    ]
    assert sorted(len(each.records) for each in measurements(runs)) == [1, 2]


def test_settings_are_chosen_by_validation_and_never_by_the_test_part():
    lucky = record_of(ser=0.1, validation=0.3, **{"training.epochs": 5})
    sound = record_of(ser=0.2, validation=0.2, **{"training.epochs": 6})
    unscored = changed(record_of(ser=0.05, **{"training.epochs": 7}), validation=None)
    (best,) = chosen(measurements([unscored, lucky, sound]))
    assert best.test["ser"].mean == 0.2
    apart = [sound, record_of(n=2000), record_of(epsilon=3.0), record_of(corpus="snips"),
             record_of(family="clc"), record_of(mechanism="none"),
             record_of(mechanism="edp_sgd")]  # fmt: skip
    assert len(chosen(measurements([*apart, lucky]))) == len(apart)  # fmt: skip


@pytest.mark.parametrize(
    "changes, is_kept",
    [
        ({}, True),
        ({"epsilon": 99.0}, True),
        ({"epsilon": 101.0}, False),
        ({"epsilon": None}, False),
        ({"delta": 5e-4 / 3}, False),  # of another n: its ε may not stand beside others
        ({"privacy.unit": "user"}, False),  # n counts users
        ({"mechanism": "edp_sgd"}, True),
        ({"mechanism": "none", "delta": 0.1}, True),
    ],
)
def test_only_guarantees_of_an_utterance_at_the_usual_delta_are_compared(changes, is_kept):
    assert bool(measurements([record_of(**changes)])) is is_kept


def test_an_epsilon_that_holds_outright_comes_before_one_with_conditions():
    outright = changed(record_of(), holds={"epsilon": 9.0, "log10_epsilon": 0.95})
    assert (epsilon_of(outright), epsilon_of(record_of(epsilon=2.9999999))) == (9.0, 3.0)
    assert math.isinf(epsilon_of(changed(record_of(), holds_if=INFINITE)))
    (free,) = measurements([record_of(mechanism="none")])
    assert math.isinf(free.epsilon)


def test_the_rate_is_that_of_what_is_trained():
    rates = {"training.learning_rate": 0.1, "training.learning_rates.heads": 0.5}
    for settings, rate in (
        ({**rates, "model.trained": "heads"}, 0.5),
        (rates, 0.1),
        ({"model.trained": "heads", "training.learning_rate": 0.1}, 0.1),
    ):
        (found,) = measurements([record_of(**settings)])
        assert found.learning_rate == rate
