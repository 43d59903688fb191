"""`edp-mx checkpoint` from the command line's side: a folder in, a folder out, sizes on stdout."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import mxnet as mx
import numpy as np
import pytest
from golden.make_bert_hidden_states import PIECES, draw
from safetensors.numpy import load_file, save_file
from support import cli

from edp_mx.config import dump_config, load_config
from edp_mx.data.origin import Origin, read_origin
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.data.wordpiece import WordPiece
from edp_mx.dp.weights import save_weights, weights_of
from edp_mx.errors import UserError
from edp_mx.models.bert import BERTConfig
from edp_mx.models.checkpoints.huggingface import FILES, load_bert, read_checkpoint
from edp_mx.models.checkpoints.names import shapes_of
from edp_mx.models.lora import LoRA
from edp_mx.runs.build import model_for
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runs.trained_run import load_run

CONFIGS = Path(__file__).resolve().parents[3] / "configs"
TINY = BERTConfig(num_layers=1, num_heads=2, hidden_size=6, intermediate_size=5, max_positions=64)
SIZES = ("num_layers", "num_heads", "hidden_size", "intermediate_size", "max_positions")

run = partial(cli.run, "checkpoint")


@pytest.fixture
def folder(tmp_path):
    """A BERT in parts, under old names, with a head that ours has no place for."""
    tensors = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma"): draw(name, shape)
        for name, shape in shapes_of(TINY, num_pieces=len(PIECES)).items()
    }
    tensors["classifier.weight"] = np.ones((2, 6), np.float32)
    here = tmp_path / "theirs"
    here.mkdir()
    save_file(tensors, here / "part.safetensors")
    index = {"weight_map": dict.fromkeys(tensors, "part.safetensors")}
    (here / "model.safetensors.index.json").write_text(json.dumps(index))
    (here / "vocab.txt").write_text("\n".join(PIECES))
    sizes = {"num_hidden_layers": 1, "num_attention_heads": 2, "hidden_size": 6}
    sizes.update(intermediate_size=5, max_position_embeddings=64, vocab_size=len(PIECES))
    (here / "config.json").write_text(json.dumps(sizes))
    return here


def table(text):
    """Label → value of what is printed."""
    rows = (line.rsplit("  ", 1) for line in text.replace("  in lower case", "").splitlines()[1:])
    return {label.strip(): value.strip() for label, value in rows}


def test_import_writes_the_normal_form_and_tells_the_sizes(folder, tmp_path, capsys):
    out = tmp_path / "ours"
    assert run("import", folder, "--out", out) == 0
    printed = capsys.readouterr()
    names = {path.name for path in out.iterdir()}
    assert names == {*FILES, "origin.json"} - {"tokenizer.json"}
    assert read_origin(out / "origin.json") == (Origin("theirs", "unknown"),)
    theirs, ours = read_checkpoint(folder), read_checkpoint(out)
    assert (ours.config, ours.tokenizer) == (theirs.config, theirs.tokenizer)
    assert ours.tensors.keys() == theirs.tensors.keys()
    for name, values in theirs.tensors.items():
        np.testing.assert_array_equal(ours.tensors[name], values)
    # By hand: pieces, positions, types; norm; 4 squares; feed-forward; 2 norms; pooler; LM head.
    layer = 4 * (36 + 6) + (30 + 5) + (30 + 6) + 2 * 12
    parameters = (40 + 64 + 2) * 6 + 12 + layer + 42 + (42 + 12 + 40)
    told = table(printed.out)
    assert told["parameters"] == str(f"{parameters:,}") and told["pieces"] == "40"
    assert run("describe", out, "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["parameters"] == parameters and facts["hidden_size"] == 6 and facts["pieces"] == 40
    assert told["layers"] == "1" and told["hidden size"] == "6" and told["pooler"] == "yes"
    assert "classifier.weight" in printed.err
    assert run("describe", out) == 0
    assert table(capsys.readouterr().out) == told


def test_nothing_is_overwritten(folder, tmp_path):
    with pytest.raises(UserError, match="theirs holds files already; name a new folder with --out"):
        run("import", folder, "--out", folder)
    out = tmp_path / "ours"
    out.mkdir()
    run("import", folder, "--out", out)  # an empty folder is as good as none
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    trained_run(tmp_path / "run")
    for action, source in (("import", folder), ("export", tmp_path / "run")):
        with pytest.raises(UserError, match="ours holds files already"):
            run(action, source, "--out", out)
        with pytest.raises(UserError, match="config.json is a file"):
            run(action, source, "--out", out / "config.json")
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    (folder / "part.safetensors").write_bytes(b"torn")
    with pytest.raises(UserError, match="part.safetensors is damaged"):
        run("import", folder, "--out", tmp_path / "new")
    assert not (tmp_path / "new").exists()


def trained_run(path, family="bert", settings=()):
    """A run directory as training leaves it, with weights as drawn; those of adapters are drawn."""
    path.mkdir()
    parts = ("data/standin", f"model/{family}", "mechanism/sgd")
    source = path.parent / f"{family}.yaml"
    source.write_text(json.dumps({"include": [f"{CONFIGS}/{part}.yaml" for part in parts],
                                  "data": {"corpus": "communication"}, "name": "run"}))  # fmt: skip
    sizes = [f"model.{name}={getattr(TINY, name)}" for name in SIZES] + ["data.max_pieces=60"]
    config = load_config(source, [*settings, *(sizes if family == "bert" else [])])
    vocabulary = Vocabulary(
        words=("<pad>", "<unk>"), characters=("<pad>", "<unk>"), slots=("O", "B-who", "I-who"),
        intents=("call", "stop"), word_source="file", label_source="file",
        tokenizer=WordPiece(PIECES) if family == "bert" else None,
    )  # fmt: skip
    directory = RunDirectory(path)
    directory.config.write_text(dump_config(config))
    directory.write("vocabulary", vocabulary.to_json())
    model = model_for(config, vocabulary, mx.cpu())
    for name, parameter in model.collect_params().items():
        if LoRA().trains(name):
            parameter.set_data(mx.nd.array(draw(name, parameter.shape)))
    save_weights(model, directory.weights)
    return model


def test_export_writes_the_encoder_and_the_heads(tmp_path, capsys):
    model = trained_run(tmp_path / "run")
    assert run("export", tmp_path / "run", "--out", tmp_path / "out") == 0
    assert table(capsys.readouterr().out)["masked-LM head"] == "no"
    stored = load_file(tmp_path / "out" / "model.safetensors")
    weights = weights_of(model)
    heads = {name for name in weights if name.startswith(("intent_", "slot_"))}
    assert {name for name in stored if not name.startswith("bert.")} == heads and len(heads) > 4
    for name in heads:
        np.testing.assert_array_equal(stored[name], weights[name])
    query = "bert.encoder.layer.0.attention.self.query.weight"
    (ours,) = (name for name in weights if name.endswith("query_weight"))
    np.testing.assert_array_equal(stored[query], weights[ours])
    settings = json.loads((tmp_path / "out" / "config.json").read_text())
    assert settings["intents"] == ["call", "stop"] and settings["slots"][1] == "B-who"
    again = read_checkpoint(tmp_path / "out")
    assert {name: getattr(again.config, name) for name in SIZES} == {
        name: getattr(TINY, name) for name in SIZES
    }


def test_adapters_are_merged_into_what_is_exported(tmp_path):
    settings = ["model.trained=lora", "model.lora_rank=2", "model.lora_alpha=6"]
    model = trained_run(tmp_path / "run", settings=settings)
    found = load_run(tmp_path / "run")
    assert run("export", tmp_path / "run", "--out", tmp_path / "out") == 0
    config = replace(found.config, model=replace(found.config.model, trained="all"))
    plain = model_for(config, found.vocabulary, mx.cpu())
    start = plain.collect_params()["bert_pooler_weight"].data().asnumpy()
    load_bert(plain.encoder.bert, read_checkpoint(tmp_path / "out"))
    stored = load_file(tmp_path / "out" / "model.safetensors")
    for head in (plain.label_head, plain.slot):
        for name, parameter in head.collect_params().items():
            parameter.set_data(mx.nd.array(stored[name]))
    assert np.abs(plain.collect_params()["bert_pooler_weight"].data().asnumpy() - start).max() > 0.1
    spoken = [["call", "my", "mother"], ["stop"]]
    expected = found.predict(spoken)
    for ours, theirs in zip(replace(found, model=plain).predict(spoken), expected):
        assert ours.utterance == theirs.utterance
        assert ours.intent_confidence == pytest.approx(theirs.intent_confidence, abs=1e-5)
    for name, values in weights_of(model).items():  # as they were loaded again
        np.testing.assert_array_equal(weights_of(found.model)[name], values)


def test_only_a_run_of_a_bert_can_be_exported(tmp_path):
    trained_run(tmp_path / "prefixed", settings=["model.trained=prefix"])
    with pytest.raises(UserError, match="this layout has no place for a prefix"):
        run("export", tmp_path / "prefixed", "--out", tmp_path / "out")
    trained_run(tmp_path / "clc", "clc")
    with pytest.raises(UserError, match="trained a clc; only a run with model.family: bert"):
        run("export", tmp_path / "clc", "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()
