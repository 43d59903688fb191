"""A CLC with frozen public vectors, trained with DP-SGD by the shipped layer."""

import json

import numpy as np
import pytest
from support.commands import CONFIGS, QUICKSTART, TINY, edp_mx, read, weights

from edp_mx.data.embeddings import EmbeddingsConfig, load_embeddings
from edp_mx.data.synthetic import make_utterances

SETTINGS = [*TINY, "data.size=200", "training.epochs=2", "training.learning_rate=1e-3",
            "privacy.chunk_size=4"]  # fmt: skip


def trained_on(folder, **draw):
    """Vectors of the words of a draw of the corpus."""
    lines = [" ".join(u.tokens) for u in make_utterances("communication", **draw)]
    (folder / "text.txt").write_text("\n".join(lines))
    edp_mx("data", "train-embeddings", folder / "text.txt", "--out", folder / "v.vec.gz",
           "--dimension", "8", "--buckets", "2000", "--lowercase")  # fmt: skip
    return folder / "v.vec.gz"


@pytest.fixture(scope="module")
def vectors(tmp_path_factory):
    """Vectors of the words of another draw of the corpus."""
    pytest.importorskip("fasttext")
    return trained_on(tmp_path_factory.mktemp("vectors"), size=500, seed=77)


def test_vectors_of_the_corpus_itself_are_refused_and_others_are_named(vectors, tmp_path):
    """The text is recognised, though it lies elsewhere and its words are in lower case."""
    own = trained_on(tmp_path, size=200, seed=0)
    files = [QUICKSTART, CONFIGS / "recipe" / "frozen_vectors.yaml", "--check", "--set", *SETTINGS]
    said = edp_mx("train", *files, f"data.embeddings.path={own}", code=2).stderr
    assert "word vectors of its text" in said and "privacy.assume_public: [start]" in said
    assert not (tmp_path / "run").exists()
    said = " ".join(edp_mx("train", *files, f"data.embeddings.path={vectors}").stdout.split())
    assert "word vectors: v.vec.gz, trained on text without privacy, declared other" in said


def test_frozen_vectors_stay_as_they_are_in_the_file(vectors, tmp_path):
    """That ghost norms are the loop's on this network is checked by the run itself."""
    run = tmp_path / "run"
    files = [QUICKSTART, CONFIGS / "recipe" / "frozen_vectors.yaml"]
    edp_mx("train", *files, "--run", run, "--set", *SETTINGS, f"data.embeddings.path={vectors}")
    privacy = read(run, "privacy")
    assert privacy["clips"] == "utterance"
    assert 7.9 < privacy["holds"]["epsilon"] <= 8  # words and labels count as public
    words = json.loads((run / "vocabulary.json").read_text())["words"]
    config = EmbeddingsConfig(path=str(vectors), dimension=8)
    found, expected = load_embeddings(config, words)
    assert set(found) == set(words[2:]) and len(found) > 100
    trained = weights(run)
    (table,) = [name for name in trained if name.endswith("words_weight")]
    np.testing.assert_array_equal(trained[table][2:], expected)
    biases = [values for name, values in trained.items() if name.endswith("bias")]
    assert any(np.abs(values).max() > 0 for values in biases)  # the rest was trained
