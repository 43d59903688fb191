"""`edp-mx data train-embeddings` from the command line's side."""

import pytest
from support.commands import edp_mx

from edp_mx.data import fasttext_training
from edp_mx.data.embeddings import EmbeddingsConfig, load_embeddings

pytest.importorskip("fasttext")
OPTIONS = ("--dimension", "8", "--epochs", "2", "--min-count", "1", "--buckets", "2000")


@pytest.fixture
def texts(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.txt").write_text(f"Call mum at home {name}\ncall dad at work\n" * 20)
    return [tmp_path / "a.txt", tmp_path / "b.txt"]


def test_the_vectors_load(texts, tmp_path):
    out = tmp_path / "new" / "v.bin"
    said = edp_mx("data", "train-embeddings", *texts, "--out", out, *OPTIONS, "--lowercase")
    assert said.stdout.startswith(f"{out}  8 words, 8 dimensions, from {texts[0]}, {texts[1]}")
    found, vectors = load_embeddings(EmbeddingsConfig(path=str(out), dimension=8), ["mum", "new"])
    assert found == ("mum", "new") and vectors.shape == (2, 8) and abs(vectors).sum() > 0


def test_each_option_reaches_the_training(texts, tmp_path, monkeypatch):
    given = {}
    monkeypatch.setattr(
        fasttext_training, "train_fasttext", lambda *_, **named: given.update(named) or 3
    )
    options = {
        "words_path": ("--words", tmp_path / "w.txt"), "is_lowercase": ("--lowercase", True),
        "splits_punctuation": ("--split-punctuation", True), "epochs": ("--epochs", 7),
        "min_count": ("--min-count", 8), "buckets": ("--buckets", 9), "threads": ("--threads", 10),
        "seed": ("--seed", 11),
    }  # fmt: skip
    told = [part for pair in options.values() for part in pair if part is not True]
    edp_mx("data", "train-embeddings", *texts, "--out", tmp_path / "v.vec", *told)
    given.pop("progress")
    assert given == {name: value for name, (_, value) in options.items()}


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (("none.txt", "--out", "v.bin"), "none.txt: No such file"),
        (("a.txt", "--out", "b.txt"), "b.txt is there already; name another file with --out"),
        (("a.txt", "--out", "v.txt"), "v.txt: the name must end in .bin"),
        (("a.txt", "--out", "v.vec", "--epochs", "0"), "epochs is 0; it must be 1 or more"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(texts, tmp_path, given, complaint, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = texts[1].read_bytes()
    said = edp_mx("data", "train-embeddings", *given, code=2).stderr
    assert complaint in said and said.count("\n") == 1
    assert texts[1].read_bytes() == before and not list(tmp_path.glob("*v.*"))


def test_a_missing_package_is_named(texts, tmp_path, monkeypatch):
    monkeypatch.setattr(fasttext_training, "find_spec", lambda name: None)
    said = edp_mx("data", "train-embeddings", *texts, "--out", tmp_path / "v.bin", code=2).stderr
    assert "pip install fasttext-numpy2" in said and said.count("\n") == 1
