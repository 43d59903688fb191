"""An exported folder in place of a run: the same answers, also where MXNet is not installed."""

import json
import shutil
import sys
import threading

import pytest
from support import cli
from support.drawn_runs import LINES, confidence_of, differences, drawn_run, predicted, threshold_of
from support.refusals import one_sentence
from support.serving import posted, raw

import edp_mx
from edp_mx.errors import UserError
from edp_mx.runs.exported.exported_model import ExportedModel, load_model
from edp_mx.runs.exported.onnx_folder import write_onnx
from edp_mx.serving.server import build_server, predict_of, reader_of

pytest.importorskip("onnxruntime", reason="pip install 'edp_mx[onnx]'")
pytest.importorskip("onnx", reason="pip install 'edp_mx[onnx]'")

CLOSE = 1e-4
WITHOUT = """
import sys
sys.modules.update(dict.fromkeys(("mxnet", "gluonnlp", "horovod", "onnx")))  # cannot be imported
from edp_mx.cli import main
sys.exit(main(sys.argv[1:]))
"""
TEXTS = [*LINES[:60], "Zoë's call, at 18:30? (now)", "x" * 300]
MODELS = [
    (family, task) for family in ("clc", "bert") for task in ("intent_slot", "classification")
]


@pytest.fixture(scope="module", params=MODELS, ids=" ".join)
def pair(request, tmp_path_factory):
    """A run, and the folder that it was exported to."""
    family, task = request.param
    folder = tmp_path_factory.mktemp("pair")
    moves = f"model.slot_moves={'bio' if family == 'bert' else 'any'}"
    trained = drawn_run(folder / "run", family, "data.tokenizer=punctuation", moves, task=task)
    write_onnx(trained, folder / "out")
    return trained, folder / "out"


def test_it_answers_as_the_run_does(pair):
    trained, folder = pair
    exported = ExportedModel(folder)
    assert differences(predicted(trained, TEXTS), predicted(exported, TEXTS)) < CLOSE
    for text in TEXTS[:9]:
        one, other = (model.predict([model.tokens_of(text)])[0] for model in (trained, exported))
        assert one.describe() == other.describe() and one.line() == other.line()
    (loaded,) = edp_mx.predict(edp_mx.load(folder), [text])
    assert loaded.line() == other.line()
    one_sentence("an export has neither ledger nor corpus", edp_mx.account, edp_mx.load(folder))


def test_predict_reads_it_without_mxnet(pair):
    trained, folder = pair
    found = cli.from_a_shell("predict", "--json", folder, *LINES[:3], program=("-c", WITHOUT))
    assert found.returncode == 0, found.stderr
    answers = [json.loads(line) for line in found.stdout.splitlines()]
    assert differences(predicted(trained, LINES[:3]), answers) < CLOSE


def label_of(answer):
    return answer.get("intent", answer.get("label"))


def test_a_threshold_says_out_of_scope_of_those_below_it(pair, tmp_path):
    trained, folder = pair
    sure, setting = [*map(confidence_of, predicted(trained, LINES))], threshold_of(trained)
    threshold = float(setting.partition("=")[2])
    cli.run("export", trained.run.path, "--to", "onnx", "--out", tmp_path / "out",
            "--set", setting)  # fmt: skip
    card = " ".join((tmp_path / "out" / "README.md").read_text().split())
    assert 'It answers "out of scope" below' in card and "No ε covers these two numbers" in card
    as_set = ExportedModel(folder)
    as_set.set_answering([setting])
    for model in (as_set, ExportedModel(tmp_path / "out")):
        labels = [label_of(answer) for answer in predicted(model, LINES)]
        assert [label == "out of scope" for label in labels] == [one < threshold for one in sure]
    trained.set_answering([setting])
    answers = predicted(trained, LINES)
    trained.set_answering([])
    assert [label_of(answer) for answer in answers] == labels
    as_set.set_answering(["threshold=0", 'out_of_scope="no # 1"'])
    as_set.set_answering([setting])  # what was set before stays as it was written
    assert {*map(label_of, predicted(as_set, LINES))} - {*labels} == {"no # 1"}
    as_set.set_answering(["threshold=0"])
    assert "out of scope" not in map(label_of, predicted(as_set, LINES))


def test_a_temperature_lowers_confidences_and_keeps_labels(pair):
    trained, folder = pair
    exported = ExportedModel(folder)
    before = predicted(exported, LINES[:40])
    for model in (trained, exported):
        model.set_answering(["temperature=3"])
    after = predicted(exported, LINES[:40])
    assert differences(predicted(trained, LINES[:40]), after) < CLOSE
    trained.set_answering([])
    for one, other in zip(before, after):
        assert label_of(one) == label_of(other)
        assert confidence_of(other) < confidence_of(one)


def test_it_is_served(pair):
    """By the command's own functions; the command itself is in tests/unit/test_dockerfile.py."""
    trained, folder = pair
    cut, _ = reader_of(folder)
    (alone,) = predict_of(folder)([cut(LINES[0])], heard=pytest.fail)  # as on a terminal
    assert differences(predicted(trained, LINES[:1]), [alone.to_dict()]) < CLOSE
    running = build_server("mine", lambda: predict_of(folder), host="127.0.0.1", port=0,
                           seconds=60, digits=None, cut=cut)  # fmt: skip
    thread = threading.Thread(target=running.run, daemon=True)
    thread.start()
    try:
        body = json.dumps({"utterances": [{"text": text} for text in LINES[:9]]}).encode()
        found = raw(running.port, posted(body, Connection="close"))
    finally:
        running.close()
        thread.join(60)
    answers = json.loads(found.partition(b"\r\n\r\n")[2])["predictions"]
    assert differences(predicted(trained, LINES[:9]), answers) < CLOSE


@pytest.mark.parametrize("columns", ["{}", "{second: other}"])
def test_it_knows_whether_two_texts_are_read_together(tmp_path, columns):
    run, folder = tmp_path / "run", tmp_path / "out"
    trained = drawn_run(run, "clc", f"data.columns={columns}", task="classification")
    write_onnx(trained, folder)
    is_read = columns != "{}"
    assert trained.reads_second is ExportedModel(folder).reads_second is is_read
    assert reader_of(run)[1] is reader_of(folder)[1] is is_read


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    place = tmp_path_factory.mktemp("exported")
    write_onnx(drawn_run(place / "run", "clc"), place / "out")
    return place / "out"


@pytest.fixture
def folder(exported, tmp_path):
    return shutil.copytree(exported, tmp_path / "out")


@pytest.mark.parametrize("file", ["model.json", "model.onnx"])
def test_a_file_that_was_cut_is_refused(folder, file):
    content = (folder / file).read_bytes()
    (folder / file).write_bytes(content[: len(content) // 2])
    one_sentence("not JSON" if file == "model.json" else "export the run", ExportedModel, folder)


@pytest.mark.parametrize("key", ["task", "words", "transitions"])
def test_settings_that_miss_something_are_refused(folder, key):
    about = json.loads((folder / "model.json").read_text())
    del about[key]
    (folder / "model.json").write_text(json.dumps(about))
    one_sentence("export the run again", ExportedModel, folder)


@pytest.mark.parametrize("change", [
    lambda about: about["intents"].pop(), lambda about: about["intents"].append("more"),
    lambda about: about["slots"].pop(), lambda about: about["words"].append("more"),
    lambda about: about.pop("max_tokens"),
])  # fmt: skip
def test_settings_of_another_size_than_the_graph_are_refused(folder, change):
    about = json.loads((folder / "model.json").read_text())
    change(about)
    (folder / "model.json").write_text(json.dumps(about))
    one_sentence("export the run again", ExportedModel, folder)


def test_a_folder_without_its_graph_is_an_exported_one_all_the_same(folder):
    (folder / "model.onnx").unlink()
    one_sentence(r"model\.onnx .*export the run again", load_model, folder)


@pytest.mark.parametrize("family, other", [("clc", "bert"), ("bert", "clc")])
def test_a_vocabulary_of_another_family_is_refused(family, other, tmp_path):
    run, strange = (drawn_run(tmp_path / each, each).run for each in (family, other))
    run.write("vocabulary", strange.read("vocabulary"))
    one_sentence(r"vocabulary\.json is that of another run", load_model, run.path)


def test_without_onnxruntime_one_sentence_says_what_to_install(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    one_sentence("onnxruntime: pip install onnxruntime tokenizers", ExportedModel, folder)
    with pytest.raises(UserError, match="threshold must be at least 0 and at most 1, not 2"):
        monkeypatch.undo()
        ExportedModel(folder).set_answering(["threshold=2"])
