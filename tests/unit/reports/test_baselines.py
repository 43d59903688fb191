"""Whether a run is better than a constant answer: said in a sentence, with what to do."""

import pytest
from support.made_ledgers import plan_with, run_of

from edp_mx.data.utterance import Utterance
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.reports.baselines import unknown_labels, verdict
from edp_mx.reports.summary import compare
from edp_mx.runs.recount import recount
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.tasks.causal_lm.task import CAUSAL_LM

BASELINE = {"intent": "inform", "ser": 0.77, "intent_accuracy": 0.23, "slot_f1": 0.0}
BELOW = 'Intent accuracy 9.07 % is below always answering "inform" (23.00 %): '
SAME = 'Intent accuracy 23.00 % is the same as always answering "inform" (23.00 %): '
ABOVE = 'SER 178.00 % is above always answering "inform" without any slot (77.00 %): '


def scores(accuracy, ser=0.7):
    return {"intent_accuracy": accuracy, "ser": ser, "slot_f1": 0.5}


@pytest.mark.parametrize(
    ("scored", "mechanism", "said"),
    [
        (scores(0.0907, 2.0), "dp_sgd", f"{BELOW}nothing was learned. See whether it learns"),
        (scores(0.23), "none", f"{SAME}nothing was learned. Train for more epochs"),
        (scores(0.0907), None, f"{BELOW}the model is of no use here."),
        (scores(0.5, 1.78), "edp_sgd", f"{ABOVE}it inserts more wrong slots than it gets right."),
        (scores(0.24, 0.77), "dp_sgd", ""),
    ],
)
def test_what_is_no_better_is_said(scored, mechanism, said):
    lines = verdict(scored, BASELINE, mechanism=mechanism)
    assert " ".join(lines).startswith(said) and bool(lines) == bool(said)
    assert max(map(len, lines), default=0) <= 80


def test_a_language_model_is_sent_to_its_own_page():
    lines = verdict({"perplexity": 9.0}, {"perplexity": 8.0}, CAUSAL_LM, mechanism="dp_sgd")
    assert "start from public text (docs/generation.md), take" in " ".join(lines)
    assert "edp-mx plan" not in " ".join(lines)
    private = " ".join(verdict(scores(0.1), BASELINE, mechanism="dp_sgd"))
    assert "utterances (docs/recipe.md), take" in private
    assert private.endswith("a larger epsilon; `edp-mx plan` says what to expect.")


def test_where_all_have_one_intent_there_is_none_to_learn():
    alone = {**BASELINE, "intent_accuracy": 1.0}
    assert verdict(scores(1.0, 0.5), alone, mechanism="none") == []


def test_what_the_model_does_not_know_is_named():
    vocabulary = Vocabulary(
        words=(), characters=(), slots=("O", "B-city", "I-city"), intents=("fly",),
        word_source="file", label_source="file",
    )  # fmt: skip
    known = Utterance(("to", "bonn"), ("O", "B-city"), "fly")
    assert unknown_labels([known], vocabulary) == []
    strange = [Utterance(("eat",), ("B-food",), f"eat_{i}") for i in range(7)]
    intents, _, slots, *_ = unknown_labels([known, *strange], vocabulary)
    assert intents.startswith("7 of 8 utterances have an intent that the model does not know")
    whole = " ".join(unknown_labels([known, *strange], vocabulary))
    assert "(eat_0, eat_1, eat_2, eat_3, eat_4 and 2 more)" in whole
    assert "7 of 8 slots have a name that the model does not know (food), so" in whole


def test_compare_shows_the_baseline_once_and_which_runs_are_no_better(tmp_path):
    runs = []
    for name, accuracy in (("good", 0.9), ("bad", 0.1), ("old", 0.1)):
        run = RunDirectory(run_of(tmp_path / name, plan_with({"unit": "utterance"})))
        run.write("privacy", recount(run).spent.to_dict())
        run.config.write_text("name: x\ndata: {corpus: atis}\nprivacy: {mechanism: dp_sgd}\n")
        beside = {} if name == "old" else {"baseline": BASELINE}
        run.write("results", {"test": scores(accuracy), **beside})
        runs.append(run)
    delta, baseline, blank, of_bad, first, *_ = compare(runs).splitlines()[5:]
    assert delta.endswith("ε at δ = 0.00011")
    assert blank == "" and compare(runs).count("and no slots") == 1
    assert baseline.startswith('always "inform" and no slots: SER 77.00 %, intent accuracy 23.00 %')
    assert of_bad == "bad:" and first.startswith("Intent accuracy 10.00 % is below")
    of_another = {**BASELINE, "intent": "call"}  # on another corpus
    runs[2].write("results", {"test": scores(0.9), "baseline": of_another})
    told = compare(runs)
    assert 'good, bad: always "inform" and no slots' in told
    assert 'old: always "call" and no slots' in told
