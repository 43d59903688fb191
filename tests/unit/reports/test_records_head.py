"""The head of a page of runs: which attacks are compared."""

from support.records import attack_of, record_of

from edp_mx.reports.records_head import head_of_records
from edp_mx.runs.attack_files import WORDS_ALONE


def leaks_of(*attacks):
    """What the head says of a private run and one without privacy."""
    runs = record_of(), record_of(mechanism="none")
    made = [attack_of(runs[side], name, title, auc=auc, tpr=0.1)
            for side, name, title, auc in attacks]  # fmt: skip
    return head_of_records(runs, made)[2]


def test_one_attack_is_compared_and_not_the_best_of_whatever_was_made():
    found = leaks_of((0, "threshold", "loss", 0.55), (1, "threshold", "loss", 0.60),
                     (1, "lira", "LiRA online", 0.90))  # fmt: skip
    assert found.value == "55.0 %" and "a threshold on outputs" in found.says[0]
    assert [bar.text for bar in found.bars[:2]] == ["55.0 %", "60.0 %"]


def test_lira_goes_first_and_a_guess_without_the_model_is_none():
    found = leaks_of((0, "lira", "LiRA online", 0.60), (1, "lira", "LiRA online", 0.80),
                     (0, "threshold", WORDS_ALONE, 0.99))  # fmt: skip
    assert [bar.text for bar in found.bars[:2]] == ["60.0 %", "80.0 %"]
    assert leaks_of((0, "threshold", WORDS_ALONE, 0.99)).value == "not measured"
