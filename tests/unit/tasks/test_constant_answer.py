"""The scores of a constant answer, against the scores of such answers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.refusals import one_sentence

from edp_mx.metrics.evaluation import evaluate
from edp_mx.tasks.intent_slot.task import INTENT_SLOT

TAGS = st.lists(st.sampled_from(["O", "B-a", "I-a", "B-b"]), min_size=1, max_size=5)
CORPUS = st.lists(
    st.builds(lambda tags, intent: Spoken(tags, intent), TAGS, st.sampled_from("xyz")), min_size=1
)


class Spoken:
    def __init__(self, slots, intent):
        self.slots, self.intent = slots, intent


@given(CORPUS)
def test_it_is_the_best_of_all_answers_with_one_intent_and_no_slots(corpus):
    found = INTENT_SLOT.constant_answer(corpus)
    answers = {
        intent: evaluate(corpus, [Spoken(["O"] * len(each.slots), intent) for each in corpus])
        for intent in "xyz"
    }
    best = min(answers.values(), key=lambda scores: scores.ser)
    assert found["ser"] == pytest.approx(best.ser, abs=1e-12)
    assert (found["intent_accuracy"], found["slot_f1"]) == (best.intent_accuracy, best.slot_f1)
    first = min(name for name, scores in answers.items() if scores.ser == best.ser)
    assert found["intent"] == first


def test_nothing_has_no_baseline():
    one_sentence("no utterances", INTENT_SLOT.constant_answer, [])
