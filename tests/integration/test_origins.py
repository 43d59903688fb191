"""A model, a merged corpus and a list say where they come from, wherever they go."""

import json
import shutil

import pytest
from support.commands import CONFIGS, TINY, edp_mx, read
from support.jsonl import write_jsonl

from edp_mx.data.synthetic import make_utterances

# Without privacy, with word pieces of the training part: what must not come back as public.
CONFIG = """
include: [CONFIGS/model/bert.yaml, CONFIGS/mechanism/MECHANISM.yaml]
name: small
data: {corpus: mine, path: PLACE/mine.jsonl, split: 80/10/10,
  labels: {source: file, path: PLACE/labels.json}}
model: {num_layers: 1, num_heads: 2, hidden_size: 16, intermediate_size: 16}
training: {epochs: 1, batch_size: 32}
"""
PRETRAINING = """
include: [CONFIGS/mechanism/sgd.yaml]
task: masked_lm
data: {corpus: lines, path: TEXT, split: 80/10/10, vocabulary: {max_words: 200}}
model: {family: bert, num_layers: 1, num_heads: 2, hidden_size: 16, intermediate_size: 16}
training: {epochs: 1, batch_size: 32}
"""
OWN = "the model starts from a run that was trained on the same corpus, or may have been"
PIECES = "the vocabulary, characters and labels were read off the private training part"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Two corpora, and A, which was trained on the first, exported as `exp`."""
    place = tmp_path_factory.mktemp("origins")
    for name, corpus in (("mine", "communication"), ("other", "health")):
        write_jsonl(place / f"{name}.jsonl", make_utterances(corpus, size=400, seed=7))
    edp_mx("data", "labels", place / "mine.jsonl", place / "other.jsonl", "--public",
           "--out", place / "labels.json")  # fmt: skip
    for mechanism in ("sgd", "dp_sgd"):
        text = CONFIG.replace("CONFIGS", str(CONFIGS)).replace("MECHANISM", mechanism)
        (place / f"{mechanism}.yaml").write_text(text.replace("PLACE", str(place)))
    edp_mx("train", place / "sgd.yaml", "--run", place / "A")
    edp_mx("export", place / "A", "--to", "huggingface", "--out", place / "exp")
    return place


def heads(place, start, *settings, code=0, assumed="vocabulary, start", key="start_from"):
    """What `--check` says of DP heads on the first corpus at ε = 1 that start from a folder."""
    given = [f"model.{key}={place / start}", "data.vocabulary.source=checkpoint",
             "model.trained=heads", "privacy.target_epsilon=1",
             f"privacy.assume_public=[{assumed}]", *settings]  # fmt: skip
    done = edp_mx("train", place / "dp_sgd.yaml", "--check", "--set", *given, code=code)
    return " ".join((done.stderr if code else done.stdout).split())


def test_an_export_is_like_the_run_that_it_is_of(place):
    """By either key, once imported, and once another corpus was trained on after it."""
    edp_mx("checkpoint", "import", place / "exp", "--out", place / "imp")
    said = heads(place, "A")
    assert f"epsilon that holds infinite: {PIECES}; {OWN}" in said
    assert "start: A, trained on mine without privacy, which is this corpus, or may be" in said
    assert heads(place, "exp") == heads(place, "imp") == said
    assert heads(place, "exp", key="checkpoint") == said
    for folder in ("A", "exp", "imp"):
        assert f"because {PIECES}" in heads(place, folder, assumed="start", code=2)
        refusal = heads(place, folder, assumed="vocabulary", code=2)
        assert f"privacy.target_epsilon: epsilon is infinite whatever the noise, because {OWN}" \
            in refusal  # fmt: skip
    kept = (place / "exp" / "origin.json").read_text()
    assert "communication" not in kept and str(place) not in kept


def test_a_detour_by_another_corpus_and_a_second_export_forgets_nothing(place):
    settings = [
        "data.corpus=other",
        f"data.path={place / 'other.jsonl'}",
        "data.vocabulary.source=checkpoint",
        f"model.checkpoint={place / 'exp'}",
    ]
    edp_mx("train", place / "sgd.yaml", "--run", place / "B", "--set", *settings)
    edp_mx("export", place / "B", "--to", "huggingface", "--out", place / "exp_of_B")
    said = heads(place, "exp_of_B")
    assert f"epsilon that holds infinite: {PIECES}; {OWN}" in said
    assert "start: B, trained on other without privacy, declared other than this corpus" in said
    assert "start: A, trained on mine without privacy, which is this corpus, or may be" in said


def test_a_run_from_an_export_has_no_epsilon(place):
    settings = [f"model.checkpoint={place / 'exp'}", "data.vocabulary.source=checkpoint",
                "model.trained=heads", "privacy.target_epsilon=null",
                "privacy.noise_multiplier=2"]  # fmt: skip
    run = place / "C"
    edp_mx("train", place / "dp_sgd.yaml", "--run", run, "--set", *settings)
    privacy = read(run, "privacy")
    assert privacy["holds"]["epsilon"] is None and OWN in privacy["holds"]["reason"]
    edp_mx("export", run, "--to", "huggingface", "--out", place / "exp_of_C")
    (first, second) = json.loads((place / "exp_of_C" / "origin.json").read_text())["origin"]
    assert (first["how"], first["epsilon"], second["how"]) == ("dp_sgd", None, "none")
    said = "A, trained on mine without privacy, which is this corpus, or may be"
    assert f"start: {said}" in privacy["declarations"]
    for report in (edp_mx("explain", run), edp_mx("account", run)):
        assert said in " ".join(report.stdout.split())
    assert json.loads(edp_mx("account", run, "--json").stdout)["declarations"] == \
        privacy["declarations"]  # fmt: skip
    assert said in (run / "report.html").read_text()


def test_a_pretraining_on_the_texts_of_the_corpus_is_known_by_them(place):
    """Without its origin, nobody can tell; another text is another."""
    for name in ("mine", "other"):
        text = place / f"{name}.txt"
        edp_mx("data", "text", place / f"{name}.jsonl", "--out", text)
        (place / "pretrain.yaml").write_text(
            PRETRAINING.replace("CONFIGS", str(CONFIGS)).replace("TEXT", str(text))
        )
        edp_mx("train", place / "pretrain.yaml", "--run", place / f"bert_{name}")
    said = heads(place, "bert_mine/model", key="checkpoint")
    assert f"epsilon that holds infinite: {PIECES}; {OWN}" in said
    assert "start: bert_mine, trained on mine without privacy, which is this" in said
    said = heads(place, "bert_other/model", assumed="")
    assert "bert_other, trained on other without privacy, declared other" in said
    (place / "bert_mine" / "model" / "origin.json").unlink()
    said = heads(place, "bert_mine/model", assumed="")
    assert "start: bert_mine/model, whose training text nobody here knows" in said


def test_what_comes_without_an_origin_is_named(place):
    folder = place / "elsewhere"
    shutil.copytree(place / "exp", folder)
    (folder / "origin.json").unlink()
    said = heads(place, "elsewhere", assumed="")
    assert "epsilon that holds 0.9" in said or "epsilon that holds 1 " in said
    assert "start: elsewhere, whose training text nobody here knows" in said


def test_a_merged_corpus_is_known_by_its_texts_and_names_what_it_was_made_of(place):
    """Its labels are others, and so are its split and its place; the file beside it may be lost."""
    merged = place / "merged.jsonl.gz"
    edp_mx("data", "merge", place / "mine.jsonl", "health:300", "--out", merged)
    shutil.copy(merged, place / "alone.jsonl.gz")
    for name, corpora in (("merged", "mine, health"), ("alone", "public")):
        settings = ["data.corpus=public", f"data.path={place / name}.jsonl.gz",
                    "data.labels.source=train", "data.labels.path=null"]  # fmt: skip
        edp_mx("train", place / "sgd.yaml", "--run", place / name, "--set", *settings)
        said = heads(place, name)
        assert f"epsilon that holds infinite: {PIECES}; {OWN}" in said
        whole = f"start: {name}, trained on {corpora} without privacy, which is this corpus, or"
        assert whole in said
        assert OWN in heads(place, name, assumed="vocabulary", code=2)
    settings = ["data.corpus=other", f"data.path={place / 'other.jsonl'}"]
    said = heads(place, "merged", *settings, assumed="")
    assert "start: merged, trained on mine, health without privacy, declared other" in said


def test_weights_that_are_drawn_bring_nothing(place):
    (place / "words.txt").write_text("call\nmum\n")
    text = (place / "dp_sgd.yaml").read_text().replace("bert.yaml", "clc.yaml")
    kept = [line for line in text.splitlines() if not line.startswith("model:")]
    (place / "drawn.yaml").write_text("\n".join(kept))
    settings = [*TINY, "data.vocabulary.source=file", f"data.vocabulary.path={place / 'words.txt'}",
                "data.embeddings.dimension=4"]  # fmt: skip
    (place / "v.vec").write_text("call 1 2 3 4\n")
    for more, named in (([], False), ([f"data.embeddings.path={place / 'v.vec'}"], True)):
        run = place / f"drawn{named}"
        edp_mx("train", place / "drawn.yaml", "--run", run, "--set", *settings, *more)
        privacy = read(run, "privacy")
        vectors = "v.vec, whose training text nobody here knows"
        assert privacy["holds"]["epsilon"] <= 8 and (vectors in privacy["not_covered"]) is named
        assert not any("word vectors, or a checkpoint" in text for text in privacy["not_covered"])
        assert privacy["declarations"] == [
            "words: declared public by the list words.txt (data.vocabulary)",
            "labels: read from mine.jsonl, other.jsonl, declared public by --public (the list "
            "labels.json)",
            *[f"word vectors: {vectors}"] * named,
        ]


def test_who_called_labels_public_stands_in_list_ledger_and_every_report(place, monkeypatch):
    (place / "configs").symlink_to(CONFIGS)
    monkeypatch.chdir(place)
    edp_mx("init", "mine.jsonl", "--public", "video", "--labels-are-public")
    assert "public by --labels-are-public" in (place / "mine.yaml").read_text()
    by_option = "read from mine.jsonl, declared public by --labels-are-public"
    assert read(place, "mine.labels")["public"] == by_option
    run = place / "declared"
    said = f"labels: {by_option} (the list mine.labels.json)"
    settings = [*TINY, "training.epochs=1", "privacy.target_epsilon=8"]
    log = edp_mx("train", "mine.yaml", "--run", run, "--set", *settings).stderr
    head = json.loads((run / "privacy_ledger.jsonl").read_text().splitlines()[0])
    assert {"of": "labels", "said": said[8:], "is_open": False} in head["plan"]["declarations"]
    assert said in read(run, "privacy")["declarations"]
    assert said in json.loads(edp_mx("account", run, "--json").stdout)["declarations"]
    shown = (log, edp_mx("explain", run).stdout, edp_mx("account", run).stdout,
             (run / "report.html").read_text())  # fmt: skip
    for text in shown:
        assert said in " ".join(text.split())
    edp_mx("init", "mine.jsonl", "--public", "video", "--force")
    labels = read(place, "mine.labels")
    del labels["private"]
    (place / "mine.labels.json").write_text(json.dumps(labels))
    checked = " ".join(edp_mx("train", "mine.yaml", "--check").stdout.split())
    assert (
        "labels: read from mine.jsonl, declared public by the list mine.labels.json, whose line "
        '"private" was removed'
    ) in checked
