"""`edp-mx export`: a run in, a folder with a model card out; what has no place is refused."""

import json
from dataclasses import replace

import mxnet as mx
import numpy as np
import pytest
import yaml
from safetensors.numpy import load_file
from support import cli
from support.drawn_runs import LINES, differences, drawn_run, predicted
from support.refusals import one_sentence

from edp_mx.data.origin import UNKNOWN, Origin, read_origin, write_origin
from edp_mx.dp.weights import weights_of
from edp_mx.errors import UserError
from edp_mx.models.checkpoints.huggingface import load_bert, read_checkpoint
from edp_mx.runs.build import model_for

OURS = {"intent_classifier": "intent_dense", "classifier": "slot_dense"}  # theirs → our heads
CLASSIFIER = {"task": "classification"}


def export(trained, out, to="huggingface"):
    """What an export prints."""
    return cli.run("export", trained.run.path, "--to", to, "--out", out)


def test_the_encoder_and_the_heads_are_in_one_file(tmp_path, capsys):
    trained, out = drawn_run(tmp_path / "run", "bert"), tmp_path / "out"
    assert export(trained, out) == 0
    printed = capsys.readouterr().out.splitlines()
    assert [line.split()[-1] for line in printed] == [str(path) for path in sorted(out.iterdir())]
    stored, weights = load_file(out / "model.safetensors"), weights_of(trained.model)
    heads = {name for name in stored if not name.startswith("bert.")}
    assert heads == {f"{name}.{of}" for name in OURS for of in ("weight", "bias")}
    for name in heads:
        theirs, of = name.split(".")
        np.testing.assert_array_equal(stored[name], weights[f"{OURS[theirs]}_{of}"])
    settings = json.loads((out / "config.json").read_text())
    assert settings["architectures"] == ["BertForTokenClassification"]
    assert [*settings["id2label"].values()] == [*trained.vocabulary.slots]
    again = read_checkpoint(out)
    assert again.config.hidden_size == 12 and again.tokenizer == trained.vocabulary.tokenizer


def test_adapters_are_merged_into_what_is_exported(tmp_path):
    settings = ["model.trained=lora", "model.lora_rank=2", "model.lora_alpha=1"]
    trained = drawn_run(tmp_path / "run", "bert", *settings)
    before, expected = weights_of(trained.model), predicted(trained, LINES[:40])
    export(trained, tmp_path / "out")
    config = replace(trained.config, model=replace(trained.config.model, trained="all"))
    plain = model_for(config, trained.vocabulary, mx.cpu())
    load_bert(plain.encoder.bert, read_checkpoint(tmp_path / "out"))
    for head in plain.heads.values():
        for name, parameter in head.collect_params().items():
            parameter.set_data(mx.nd.array(before[name]))
    found = predicted(replace(trained, config=config, model=plain), LINES[:40])
    assert differences(expected, found) < 1e-4
    for name, values in weights_of(trained.model).items():
        np.testing.assert_array_equal(before[name], values)


def test_a_classifier_is_one_that_transformers_knows(tmp_path):
    trained = drawn_run(tmp_path / "run", "bert", **CLASSIFIER)
    export(trained, tmp_path / "out")
    settings = json.loads((tmp_path / "out" / "config.json").read_text())
    assert settings["architectures"] == ["BertForSequenceClassification"]
    assert settings["label2id"] == {n: i for i, n in enumerate(trained.vocabulary.intents)}
    assert not (tmp_path / "out" / "modeling.py").exists()
    stored = load_file(tmp_path / "out" / "model.safetensors")
    np.testing.assert_array_equal(
        stored["classifier.weight"], trained.model.label_head.weight.data().asnumpy()
    )


def test_a_card_tells_scores_privacy_and_limits(tmp_path):
    trained = drawn_run(tmp_path / "run", "bert", **CLASSIFIER)
    line = (Origin("run", "none"), Origin("mini", UNKNOWN, source="someone/mini at 1a2b3c4, MIT"))
    write_origin(trained.run.path / "origin.json", line)
    export(trained, tmp_path / "out")
    assert read_origin(tmp_path / "out" / "origin.json")[1] == line[1]
    _, front, rest = (tmp_path / "out" / "README.md").read_text().split("---\n", 2)
    told = yaml.safe_load(front)
    assert (told["license"], told["library_name"]) == ("mit", "transformers")
    assert told["pipeline_tag"] == "text-classification"
    assert told["metrics"] == ["accuracy", "macro_f1"]
    (model,) = told["model-index"]
    assert model["results"][0]["metrics"][0] == {"type": "accuracy", "name": "accuracy",
                                                 "value": 0.9}  # fmt: skip
    assert 'pipeline("text-classification"' in rest and "someone/mini at 1a2b3c4, MIT" in rest
    assert "| this model |      90.00 |" in rest and "epsilon is infinite" in rest
    assert "beyond 9 tokens or 26 word pieces is not" in rest


def test_a_threshold_is_refused_where_nothing_would_read_it(tmp_path):
    trained = drawn_run(tmp_path / "run", "bert", **CLASSIFIER)
    with pytest.raises(UserError, match="--set: Hugging Face's layout has no place for how this"):
        cli.run("export", trained.run.path, "--to", "huggingface", "--out", tmp_path / "out",
                "--set", "threshold=0.5")  # fmt: skip
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("family", "settings", "task", "to", "said"),
    [
        ("clc", [], "intent_slot", "huggingface",
         "has model.family: clc, and Hugging Face's .*; export it with --to onnx"),
        ("bert", ["model.trained=prefix"], "intent_slot", "huggingface",
         "no place for a prefix; export it with --to onnx"),
        ("bert", ["model.trained=prefix"], "masked_lm", "huggingface",  # nor does ONNX have one
         "no place for a prefix; let edp-mx predict and serve read the run itself"),
        ("bert", [], "masked_lm", "onnx", "has task: masked_lm, whose model gives no labels"),
    ],
)  # fmt: skip
def test_what_has_no_place_is_refused_and_leaves_nothing(
    family, settings, task, to, said, tmp_path
):
    trained = drawn_run(tmp_path / "run", family, *settings, task=task)
    one_sentence(said, export, trained, tmp_path / "out", to)
    assert not (tmp_path / "out").exists()


def test_nothing_is_overwritten_and_a_run_must_have_ended(tmp_path):
    trained, out = drawn_run(tmp_path / "run", "bert"), tmp_path / "out"
    out.mkdir()
    (out / "mine").write_text("mine")
    for to in ("onnx", "huggingface"):
        one_sentence("out holds files already; name a new folder", export, trained, out, to)
    assert [path.name for path in out.iterdir()] == ["mine"]
    (trained.run.path / "results.json").unlink()
    one_sentence("has not trained to its end", export, trained, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_without_the_package_onnx_one_sentence_says_what_to_install(tmp_path, monkeypatch):
    trained = drawn_run(tmp_path / "run", "clc")
    monkeypatch.setitem(cli.sys.modules, "onnx", None)
    with pytest.raises(UserError, match=r"needs onnx: pip install 'edp_mx\[onnx\]'"):
        export(trained, tmp_path / "out", "onnx")
    assert not (tmp_path / "out").exists()
