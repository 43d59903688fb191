"""Classification through the command line: from tables to a private model that is used."""

import json

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score
from support.commands import CONFIGS, assert_is_whole, edp_mx, read, rows
from support.texts import texts, write_table

from edp_mx import api
from edp_mx.config import load_config
from edp_mx.errors import UserError

SST2 = CONFIGS / "classification" / "sst2.yaml"
PRIVATE = CONFIGS / "classification" / "private.yaml"
TINY = ["data.embeddings.dimension=16", "model.hidden_size=16", "model.character_filters=4"]
OF_PRIVATE = ["training.batch_size=200", "training.epochs=20", "training.learning_rate=0.02"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A folder with train.tsv and dev.tsv: no test part, as SST-2 has none with labels."""
    folder = tmp_path_factory.mktemp("reviews")
    generator = np.random.default_rng(5)
    write_table(folder / "train.tsv", texts(generator, 1200))
    write_table(folder / "dev.tsv", texts(generator, 200))
    return folder


@pytest.fixture(scope="module")
def runs(corpus, tmp_path_factory):
    """Runs without privacy and at ε = 8."""
    folder = tmp_path_factory.mktemp("runs")
    for name, files, settings in (
        ("sgd", [SST2], ["training.epochs=3", "training.learning_rate=0.01"]),
        ("private", [SST2, PRIVATE], OF_PRIVATE),
    ):
        edp_mx("train", *files, "--run", folder / name, "--set", f"data.path={corpus}",
               *TINY, *settings)  # fmt: skip
    return folder


def test_a_run_has_accuracy_and_macro_f1_beside_a_constant_answer(runs):
    run = runs / "private"
    assert_is_whole(run)
    results, record = read(run, "results"), read(run, "record")
    assert results["test"]["texts"] == 200 and len(read(run, "split")["test"]) == 200
    assert results["baseline"]["label"] == "praise"
    assert results["test"]["accuracy"] > results["baseline"]["accuracy"] + 0.2
    assert record["settings"]["task"] == "classification"
    assert record["test"].keys() == {"accuracy", "macro_f1"}
    assert [*record["by_epoch"]][:3] == ["epoch", "loss", "validation_accuracy"]
    assert {"accuracy", "macro_f1"} < rows(run)[0].keys()
    page = (run / "report.html").read_text()
    assert "macro F1 %" in page and "SER" not in page and "slot F1" not in page


def test_the_epsilon_is_that_of_any_dp_sgd(runs):
    private = read(runs / "private", "privacy")
    assert private["holds_if"]["epsilon"] == pytest.approx(8, rel=1e-3)
    assert private["holds_if"]["epsilon"] <= 8
    n = len(read(runs / "private", "split")["train"])
    assert private["num_examples"] == n == 1140  # 5 % of 1200 were held out


def test_predict_and_evaluate_agree_and_scikit_learn_finds_the_same_scores(runs, corpus):
    lines = [line.split("\t") for line in (corpus / "dev.tsv").read_text().splitlines()[1:]]
    given = "\n".join(text for text, _ in lines)
    said = edp_mx("predict", runs / "sgd", "-", "--json", text=given).stdout
    answers = [json.loads(line) for line in said.splitlines()]
    found, true = [answer["label"] for answer in answers], [label for _, label in lines]
    for answer in answers:
        assert answer["confidence"] == max(answer["confidences"].values())
        assert sum(answer["confidences"].values()) == pytest.approx(1)
    scores = json.loads(edp_mx("evaluate", runs / "sgd", "--json").stdout)
    assert scores["accuracy"] == accuracy_score(true, found)
    assert scores["macro_f1"] == pytest.approx(f1_score(true, found, average="macro"))
    other = edp_mx("evaluate", runs / "sgd", "--file", corpus / "dev.tsv").stdout
    assert f"{100 * scores['accuracy']:.2f}%" in other and 'always "praise"' in other


def test_python_gets_the_same_answer(runs):
    (answer,) = api.predict(api.load(runs / "sgd"), ["a dull film"])
    assert answer.label == "blame" and answer.line() == "blame: a dull film"


def test_tables_of_runs_show_the_scores_of_the_task(runs):
    compared = edp_mx("compare", runs / "sgd", runs / "private").stdout
    assert "accuracy %" in compared and "F1: macro F1" in compared and "SER" not in compared
    listed = edp_mx("runs", runs, "--where", "task=classification", "--sort", "score").stdout
    assert "sgd" in listed and "private" in listed and "accuracy %" in listed


def test_attacks_ask_the_outputs_of_the_label_alone(runs):
    edp_mx("attack", runs / "sgd")
    found = {each["name"] for each in read(runs / "sgd" / "attack-threshold", "attack")["results"]}
    assert "loss" in found and "loss of the slots" not in found


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("data.columns.slots=tags", "data.columns.slots must be left out, because task: class"),
        (
            "task=classify",
            "task must be one of intent_slot, classification, masked_lm, causal_lm, not",
        ),
    ],
)
def test_what_does_not_fit_the_task_is_refused(setting, said):
    with pytest.raises(UserError, match=said):
        load_config(SST2, [setting])


def test_runs_of_two_tasks_are_not_compared(runs, tmp_path):
    quick = ["data.size=400", "training.epochs=1", *TINY]
    edp_mx("train", CONFIGS / "quickstart.yaml", "--run", tmp_path / "ner", "--set", *quick)
    said = edp_mx("compare", runs / "sgd", tmp_path / "ner", code=2).stderr
    assert "task: classification" in said and "cannot be compared" in said


def test_a_sweep_and_the_page_of_runs_ask_the_task(corpus, runs, tmp_path):
    (tmp_path / "base.yaml").write_text(
        f"include: [{SST2}]\n"
        f"data: {{path: {corpus}, embeddings: {{dimension: 16}}}}\n"
        "model: {hidden_size: 16, character_filters: 4}\n"
        "training: {epochs: 2}\n"
    )
    (tmp_path / "sweep.yaml").write_text(
        "base: [base.yaml]\nmethod: grid\npruner: halving\nfirst_epochs: 1\n"
        "parameters: {training.learning_rate: [0.01, 1.0e-7]}\n"
    )
    where = ("--out", tmp_path / "out", "--records", tmp_path / "none")
    trials = json.loads(edp_mx("sweep", tmp_path / "sweep.yaml", *where, "--json").stdout)
    found = {each["values"]["training.learning_rate"]: each["accuracy"] for each in trials}
    table = edp_mx("sweep", tmp_path / "sweep.yaml", *where).stdout
    assert found[0.01] > 0.8 and "valid. accuracy %" in table
    assert "best: --set training.learning_rate=0.01" in table and "SER" not in table
    edp_mx("report", runs, "--out", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "macro F1 %" in page and "private" in page
