"""What leaves as ONNX gives the scores and the answers of the run."""

import json
import subprocess
import sys

import numpy as np
import pytest
from support.drawn_runs import (
    LINES,
    UTTERANCES,
    byte_level_bpe,
    differences,
    drawn_run,
    predicted,
    threshold_of,
)

from edp_mx.data.encoding import evaluation_batches
from edp_mx.runs.build import encode_part
from edp_mx.runs.exported.onnx_folder import onnx_model, write_onnx

onnxruntime = pytest.importorskip("onnxruntime", reason="pip install 'edp_mx[onnx]'")
pytest.importorskip("onnx", reason="pip install 'edp_mx[onnx]'")

CLOSE = 1e-4  # of scores up to about 10
TRAINED = ("all", "heads", "biases", "rgp", "prefix")
HEADS = "model.trained=heads"
LORA = ("model.trained=lora", "model.lora_rank=2", "model.lora_alpha=1")
MODELS = {
    **{f"clc {kind}": ("clc", f"model.intent_pooling={kind}") for kind in ("mean", "first")},
    "clc last": ("clc", "model.intent_pooling=last", "model.num_layers=1"),
    "clc max": ("clc", "model.character_width=5", "model.trained=biases"),
    **{f"bert {part}": ("bert", f"model.trained={part}") for part in TRAINED},
    "bert lora": ("bert", *LORA),
    "bert lora, frozen": ("bert", *LORA, "model.frozen_layers=1"),
    "bert prefix, frozen": ("bert", "model.trained=prefix", "model.frozen_layers=1"),
    "bert relu": ("bert", "model.activation=relu", "model.layer_norm_epsilon=0.01"),
    "bert mean": ("bert", HEADS, "model.features=mean"),
    "bert all means": ("bert", HEADS, "model.features=all_means"),
    "bert all layers": ("bert", HEADS, "model.features=all_layers", "model.token_layer=2"),
    "bert infilling": ("bert", "model.intents=infilling"),
    "bert infilling before": ("bert", "model.intents=infilling", "model.template='[MASK] : {}'"),
    "bert infilling, lora": ("bert", "model.intents=infilling", *LORA),
    "bert infilling, all layers": ("bert", HEADS, "model.intents=infilling",
                                   "model.features=all_layers"),
}  # fmt: skip


def inputs_of(batch):
    """The inputs of a graph."""
    inputs = batch.inputs._asdict()
    if "words" in inputs:
        return {**inputs, "lengths": batch.lengths}
    return {"pieces": inputs["pieces"], "piece_lengths": inputs["lengths"],
            "firsts": inputs["firsts"]}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_a_graph_has_the_scores_of_the_model(name, tmp_path):
    trained = drawn_run(tmp_path / "run", *MODELS[name])
    session = onnxruntime.InferenceSession(onnx_model(trained).SerializeToString())
    encoded = encode_part(trained.config, UTTERANCES, trained.vocabulary, "given")
    assert encoded.num_cut > 10  # of 300
    batches = list(evaluation_batches(encoded, 40))
    for batch, emissions, label_scores in trained.model.outputs(batches):
        given = {key: array.astype(np.int64) for key, array in inputs_of(batch).items()}
        labels, tags = session.run(["label_scores", "emissions"], given)
        np.testing.assert_allclose(labels, label_scores, atol=CLOSE, rtol=0)
        np.testing.assert_allclose(tags[batch.mask], emissions[batch.mask], atol=CLOSE, rtol=0)
        assert np.ptp(label_scores, axis=0).max() > 100 * CLOSE  # utterances differ


ALONE = """
import json, runpy, sys
sys.path.insert(0, sys.argv[1])
sys.argv[1:] = sys.argv[2:]
runpy.run_path(sys.path[0] + "/answer.py", run_name="__main__")
assert not {"mxnet", "edp_mx", "onnx"} & sys.modules.keys()
"""


def answered(folder, texts=None, given=()):
    """The answers of a folder's script, to lines of its standard input or to its arguments."""
    lines = None if texts is None else "".join(f"{text}\n" for text in texts)
    command = [sys.executable, "-c", ALONE, str(folder), *given]
    ended = subprocess.run(command, input=lines, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return [json.loads(line) for line in ended.stdout.splitlines()]


@pytest.mark.parametrize("task", ["intent_slot", "classification"])
@pytest.mark.parametrize("family", ["clc", "bert"])
def test_the_script_answers_as_predict_does(family, task, tmp_path):
    trained = drawn_run(tmp_path / "run", family, "data.tokenizer=punctuation", task=task)
    trained.set_answering(["temperature=1.5"])
    trained.set_answering(["temperature=1.5", threshold_of(trained)])
    write_onnx(trained, tmp_path / "out")
    texts = [*LINES, "Zoë's call, at 18:30? (now)", "x" * 300, "[SEP] \u200b call"]
    expected = predicted(trained, texts)
    assert differences(expected, answered(tmp_path / "out", texts)) < CLOSE
    said = [answer.get("intent", answer.get("label")) for answer in expected]
    assert 0 < said.count("out of scope") < len(said)
    assert differences(expected[:2], answered(tmp_path / "out", given=texts[:2])) < CLOSE
    first, blank, second = answered(tmp_path / "out", [texts[0], " ", texts[1]])
    assert differences(expected[:2], [first, second]) < CLOSE and list(blank) == ["error"]


@pytest.mark.parametrize("family", ["clc", "bert"])
def test_the_script_reads_two_texts_with_sep_between_them(family, tmp_path):
    settings = ("data.columns={second: other}", "data.tokenizer=punctuation")
    trained = drawn_run(tmp_path / "run", family, *settings, task="classification")
    write_onnx(trained, tmp_path / "out")
    asked = ["call mum [SEP] or not?", "Is it 18:30? [SEP] yes"]
    expected = predicted(trained, asked)
    assert [each["tokens"].count("[SEP]") for each in expected] == [1, 1]
    assert differences(expected, answered(tmp_path / "out", asked)) < CLOSE


@pytest.mark.parametrize("settings", [(), ("model.intents=infilling",)], ids=str)
def test_the_script_spells_bytes_and_writes_the_template(settings, tmp_path):
    pieces = byte_level_bpe(tmp_path / "bpe")
    trained = drawn_run(tmp_path / "run", "bert", *settings, tokenizer=pieces)
    write_onnx(trained, tmp_path / "out")
    texts = [*LINES[:60], "Zoë's call at 18:30", "x" * 300, "[MASK] [SEP] call"]
    assert differences(predicted(trained, texts), answered(tmp_path / "out", texts)) < CLOSE
