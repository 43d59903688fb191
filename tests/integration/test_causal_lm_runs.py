"""A language model through the command line: what it learns, how it goes on, with privacy."""

import http.client
import json
import shutil
import threading
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from support.commands import assert_is_whole, edp_mx, read
from support.pretraining import kill_in_the_middle, rows, write_config

from edp_mx.api import predict
from edp_mx.models.gpt2.checkpoint import read_checkpoint
from edp_mx.serving.server import build_server, predict_of

CONFIG = """
include: [copies.yaml]
task: causal_lm
data: {vocabulary: {max_words: 300}}
model: {family: gpt2, max_positions: 64}
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run from beginning to end, its configuration, and what it printed."""
    folder = tmp_path_factory.mktemp("language_model")
    config = write_config(folder).with_name("language_model.yaml")
    config.write_text(CONFIG)
    result = edp_mx("train", config, "--run", folder / "run")
    assert "Warning" not in result.stderr
    return folder / "run", config, result.stdout


def test_it_learns_what_comes_next(whole):
    """A line says one word six times: five of its pieces follow from the first."""
    results = read(whole[0], "results")
    test, baseline = results["test"], results["baseline"]
    assert baseline["perplexity"] > 12 and baseline["piece_accuracy"] < 0.2
    assert test["perplexity"] < baseline["perplexity"] / 2
    assert test["piece_accuracy"] > 0.55  # 5 of 8 pieces or more can be known, and the last
    assert f"each piece by its frequency: perplexity {baseline['perplexity']:.2f}" in whole[2]
    assert_is_whole(whole[0])


def test_a_killed_run_goes_on_with_the_same_curve(whole, tmp_path):
    run, config, _ = whole
    kill_in_the_middle(tmp_path / "run", config)
    assert "resuming the run" in edp_mx("train", "--resume", tmp_path / "run").stderr
    assert rows(tmp_path / "run") == rows(run)
    results = [read(folder, "results") for folder in (run, tmp_path / "run")]
    assert all(result.pop("training_seconds") > 0 for result in results)
    assert results[0] == results[1]


def test_the_model_is_one_that_can_be_started_from(whole, tmp_path):
    run, config, _ = whole
    settings = ["training.epochs=1", "data.size=400", f"model.checkpoint={run / 'model'}",
                "data.vocabulary.source=checkpoint", "training.learning_rate=1e-9"]  # fmt: skip
    edp_mx("train", config, "--run", tmp_path / "run", "--set", *settings)
    assert rows(tmp_path / "run")[0]["loss"] < rows(run)[0]["loss"] / 2  # not from chance
    before, after = (read_checkpoint(each / "model") for each in (run, tmp_path / "run"))
    assert before.tokenizer == after.tokenizer
    for name, values in before.tensors.items():
        np.testing.assert_allclose(after.tensors[name], values, atol=1e-5)


def test_it_is_exported_with_a_card_that_fits_it(whole, tmp_path):
    run = whole[0]
    edp_mx("export", run, "--to", "huggingface", "--out", tmp_path / "exported")
    card = (tmp_path / "exported" / "README.md").read_text()
    assert "pipeline_tag: text-generation" in card
    assert '("<|endoftext|>a prompt<|endoftext|>")' in card
    assert "need not be true" in card and "label" not in card.partition("## Limits")[2]
    before, after = (read_checkpoint(each) for each in (run / "model", tmp_path / "exported"))
    for name, values in before.tensors.items():
        np.testing.assert_array_equal(after.tensors[name], values)


def test_it_continues_a_text_and_is_scored_again(whole):
    run = whole[0]
    (found,) = edp_mx("predict", run, "--json", "play play play").stdout.splitlines()
    assert json.loads(found)["continuation"].startswith("play play play")
    drawing = {"temperature": 1, "top_k": 1, "max_pieces": 2}
    texts = [f"{key}={value}" for key, value in drawing.items()]
    said = edp_mx("predict", run, "play play", "--set", *texts).stdout
    (answer,) = predict(run, ["play play"], settings=drawing)
    assert said == f"{answer.line()}\n" == "play play play play\n"
    assert json.loads(edp_mx("evaluate", run, "--json").stdout) == read(run, "results")["test"]


@pytest.mark.parametrize("settings", [
    "privacy.mechanism=edp_sgd privacy.noise_multiplier=1e-4",
    "privacy.mechanism=dp_sgd privacy.clipping=ghost privacy.chunk_size=8 "
    "privacy.noise_multiplier=0.4 privacy.max_grad_norm=1",
    "privacy.mechanism=dp_sgd privacy.clipping=loop privacy.noise_multiplier=0.4 "
    "privacy.max_grad_norm=1 model.trained=biases",
    *(f"privacy.mechanism=dp_sgd privacy.clipping=ghost privacy.chunk_size=8 "
      f"privacy.noise_multiplier=0.4 privacy.max_grad_norm=1 model.trained={part}"
      for part in ("lora", "rgp", "prefix")),
])  # fmt: skip
def test_it_goes_on_from_another_with_privacy(whole, tmp_path, settings):
    run, config, _ = whole
    more = [f"model.start_from={run}", "data.vocabulary.source=checkpoint",
            "data.vocabulary.max_words=null", "data.size=400", "training.epochs=1",
            "privacy.assume_public=[lengths,vocabulary]"]  # fmt: skip
    edp_mx("train", config, "--run", tmp_path / "run", "--set", *settings.split(), *more)
    assert np.isfinite(read(tmp_path / "run", "privacy")["holds_if"]["epsilon"])
    test = read(tmp_path / "run", "results")["test"]
    assert test["perplexity"] < 2 * read(run, "results")["test"]["perplexity"]
    assert json.loads(edp_mx("evaluate", tmp_path / "run", "--json").stdout) == test
    assert edp_mx("predict", tmp_path / "run", "play play play").stdout.startswith("play play play")
    is_merged = "prefix" not in settings  # the layout has no place for a prefix
    assert (tmp_path / "run" / "model").is_dir() == is_merged


def test_what_it_writes_is_told_while_it_is_written(whole):
    """The server's lines, read as they come, are the text that `predict` prints at its end."""
    server = build_server("lm", partial(predict_of, whole[0]), host="127.0.0.1", port=0, seconds=60)
    thread = threading.Thread(target=server.run)
    thread.start()
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    asked = {"text": "play play play", "stream": True}
    connection.request("POST", "/predict", json.dumps(asked), {"Content-Type": "application/json"})
    *parts, answer = map(json.loads, connection.getresponse())
    connection.close()
    server.close()
    thread.join()
    printed = edp_mx("predict", whole[0], asked["text"]).stdout.rstrip("\n")
    written = "".join(part["written"] for part in parts)
    assert len(parts) > 3 and printed == written
    assert printed == f"{asked['text']} {answer['continuation']}"


def test_a_5_gram_is_scored_on_the_same_pieces(whole):
    """Most of a line follows from its first word."""
    said = edp_mx("experiments.kneser_ney", whole[0]).stdout.splitlines()[2:]
    (_, _, ours, *rest), (_, _, gpt2, *same) = ([c.strip() for c in row[1:-1].split("|")]
                                                for row in said)  # fmt: skip
    test = read(whole[0], "results")["test"]
    assert float(gpt2) == pytest.approx(test["perplexity"], abs=0.06) and rest[1:] == same[1:]
    assert 1 < float(ours) < read(whole[0], "results")["baseline"]["perplexity"] / 2


def test_what_it_writes_is_kept_and_scored(whole, tmp_path):
    sacrebleu = pytest.importorskip("sacrebleu")
    run, table = whole[0], tmp_path / "mine.csv"
    said = ["play play", "call call call", "play it again", "stop"]
    table.write_text("prompt,reply\n" + "".join(f'"x = ""{word}""",{text}\n' for word, text in zip(
        ("play", "call", "play", "stop"), said)))  # fmt: skip
    found = edp_mx("evaluate", run, "--file", table, "--generate", 0, "--json", "--set", "beams=2")
    scores = json.loads(found.stdout)
    of_others, of_test = run / "generated_of_others.jsonl", run / "generated.jsonl"
    assert not of_test.exists()
    lines = [json.loads(line) for line in of_others.read_text().splitlines()]
    assert [line["prompt"] for line in lines] == [f'x = "{w}"' for w in ("play", "call", "stop")]
    assert [line["references"] for line in lines] == [[said[0], said[2]], [said[1]], [said[3]]]
    columns = [[line["references"][i] if i < len(line["references"]) else None for line in lines]
               for i in range(2)]  # fmt: skip
    bleu = sacrebleu.corpus_bleu([line["text"] for line in lines], columns).score
    assert scores["bleu"] == pytest.approx(bleu / 100)
    missing = sum(line["prompt"][5:-1] not in line["text"] for line in lines)
    assert (scores["values"], scores["missing_values"]) == (3, missing)
    edp_mx("evaluate", run, "--file", table, "--generate", 2)
    assert len(of_others.read_text().splitlines()) == 2
    assert "no token <|reply|>" in edp_mx("evaluate", run, "--generate", 2, code=2).stderr
    assert "--generate" in edp_mx("evaluate", run, "--set", "beams=2", code=2).stderr

    assert "has no replies" in edp_mx("experiments.generation", run, code=2).stderr
    scored = Path(shutil.copytree(run, tmp_path / "scored"))
    (scored / "generated.json").write_text(json.dumps(scores))  # as if of its own test part
    (scored / "generated_of_others.jsonl").rename(scored / "generated.jsonl")
    page = edp_mx("experiments.generation", scored, "--out", tmp_path / "page.md").stdout
    row = [cell.strip() for cell in page.splitlines()[2].strip("|").split("|")]
    own = read(run, "results")["test"]["perplexity"]
    assert (row[4], row[5], row[-2]) == ("–", f"{own:.1f}", f"{100 * missing / 3:.1f}")
    assert page.count("\n- `x = ") == 2 and page.strip() in (tmp_path / "page.md").read_text()
