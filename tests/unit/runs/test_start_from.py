"""A model that starts from the weights of another run."""

import numpy as np
import pytest
from support.models import leave_run

from edp_mx.config import dump_config, load_config
from edp_mx.data.corpus import load_corpus
from edp_mx.dp.weights import weights_of
from edp_mx.errors import UserError
from edp_mx.models import lora
from edp_mx.models.label_names import most_alike
from edp_mx.models.rgp import RGP
from edp_mx.runs.build import start_for
from edp_mx.runs.prepare import prepare_corpus
from edp_mx.runtime.distributed import start

SETTINGS = """
data:
  corpus: {corpus}
  size: 120
  vocabulary: {{source: {words}, min_count: {rarest}}}
  labels: {{source: sample}}
model: {model}
privacy: {{mechanism: none}}
"""
CLC = "{family: clc, hidden_size: 4, start_from: START}"
BERT = (
    "{family: bert, num_layers: 1, num_heads: 2, hidden_size: 8, intermediate_size: 8, "
    "start_from: START}"
)
families = pytest.mark.parametrize(
    "model", [BERT, BERT.replace("bert", "gpt2")], ids=["bert", "gpt2"]
)


def prepared(tmp_path, *, model, corpus="communication", words="sample", rarest=1):
    settings = SETTINGS.format(corpus=corpus, words=words, rarest=rarest, model=model)
    (tmp_path / "run.yaml").write_text(settings)
    config = load_config(tmp_path / "run.yaml")
    return prepare_corpus(load_corpus(config.data), config, start())


def run(tmp_path, model):
    """The folder of a finished run, and what was prepared for it."""
    found = prepared(tmp_path, model=model.replace(", start_from: START", ""), rarest=2)
    return leave_run(found, tmp_path / "run.yaml", tmp_path / "first"), found


def assert_taken(found, first):
    """Each parameter of a model is that of the run."""
    old = weights_of(first.model)
    for name, new in weights_of(found.model).items():
        np.testing.assert_array_equal(new, old[name], err_msg=name)


@pytest.mark.parametrize("model", [CLC, BERT], ids=["clc", "bert"])
def test_all_is_taken_where_corpus_and_vocabulary_are_the_same(tmp_path, model):
    """Sizes that nobody set are those of the start."""
    folder, first = run(tmp_path, model)
    bare = model[: model.index(",")] + f", start_from: {folder}}}"
    for given in (model.replace("START", str(folder)), bare):
        assert_taken(prepared(tmp_path, model=given, words="checkpoint"), first)


def test_the_width_of_word_vectors_is_that_of_the_start(tmp_path):
    folder, _ = run(tmp_path, CLC)
    text = (folder / "config.yaml").read_text()
    (folder / "config.yaml").write_text(
        text.replace("data:", "data:\n  embeddings: {dimension: 7}")
    )
    (tmp_path / "layer.yaml").write_text("data: {embeddings: {dimension: 9}}")
    start = f"model.start_from={folder}"
    assert load_config(tmp_path / "layer.yaml", [start]).data.embeddings.dimension == 7
    given = load_config(tmp_path / "layer.yaml", [start, "data.embeddings.dimension=9"])
    with pytest.raises(UserError, match="has data.embeddings.dimension: 7, not 9; leave data.emb"):
        start_for(given)


def test_a_run_whose_sizes_are_settled_does_not_read_its_start_again(tmp_path):
    folder, _ = run(tmp_path, CLC)
    settled = load_config(tmp_path / "run.yaml", [f"model.start_from={folder}"])
    (tmp_path / "saved.yaml").write_text(dump_config(settled))
    (folder / "config.yaml").write_text("torn: [")
    assert load_config(tmp_path / "saved.yaml").model == settled.model


def test_words_go_by_their_names_and_heads_by_their_labels(tmp_path, caplog):
    folder, first = run(tmp_path, CLC)
    with caplog.at_level("INFO"):
        second = prepared(tmp_path, model=CLC.replace("START", str(folder)), corpus="health")
    drawn = prepared(tmp_path, model=CLC.replace(", start_from: START", ""), corpus="health")
    old, new, fresh = weights_of(first.model), weights_of(second.model), weights_of(drawn.model)
    (words,) = (name for name in new if name.endswith("words_weight"))
    shared = set(first.vocabulary.words) & set(second.vocabulary.words)
    assert 2 < len(shared) < len(second.vocabulary.words)
    for i, word in enumerate(second.vocabulary.words):
        row = old[words][first.vocabulary.words.index(word)] if word in shared else fresh[words][i]
        np.testing.assert_array_equal(new[words][i], row)
    for name in second.model.label_head.collect_params():
        np.testing.assert_array_equal(new[name], fresh[name])
    assert f"starting from {folder}" in caplog.text and "intent_dense_weight" in caplog.text


@families
def test_adapters_of_a_run_are_merged_and_new_ones_drawn(model, tmp_path):
    adapted = model.replace("start_from", "trained: lora, lora_rank: 2, lora_alpha: 3, start_from")
    folder, first = run(tmp_path, adapted)
    here = adapted.replace("START", str(folder))
    found = weights_of(prepared(tmp_path, model=here, words="checkpoint").model)
    old, merged = weights_of(first.model), lora.merged(weights_of(first.model), scale=1.5)
    for name, new in found.items():
        if name in merged:
            np.testing.assert_allclose(new, merged[name], rtol=1e-6, err_msg=name)
        elif name.endswith(lora.UP):
            assert not new.any()
    query = next(name for name in found if name.endswith("query_weight"))
    assert np.abs(found[query] - old[query]).max() > 1


@families
@pytest.mark.parametrize("trained", ["all", "rgp"])
def test_a_run_with_carriers_is_an_ordinary_one(trained, model, tmp_path):
    carried = model.replace("start_from", "trained: rgp, rgp_rank: 2, start_from")
    folder, first = run(tmp_path, carried)
    here = carried.replace("START", str(folder)).replace("rgp,", f"{trained},")
    found = prepared(tmp_path, model=here, words="checkpoint")
    assert any(RGP().trains(name) for name in weights_of(found.model)) == (trained == "rgp")
    assert_taken(found, first)


@families
def test_a_prefix_is_not_lost(model, tmp_path):
    prefixed = model.replace("start_from", "trained: prefix, prefix_length: 2, start_from")
    folder, first = run(tmp_path, prefixed)
    here = prefixed.replace("START", str(folder))
    assert_taken(prepared(tmp_path, model=here, words="checkpoint"), first)
    for other in (here.replace("length: 2", "length: 3"), model.replace("START", str(folder))):
        with pytest.raises(UserError, match="first has model.trained: prefix, so that this model"):
            prepared(tmp_path, model=other, words="checkpoint")


def test_heads_by_names_start_from_labels_alike(tmp_path):
    folder, first = run(tmp_path, CLC)
    model = CLC.replace("START", str(folder)).replace("}", ", heads: names}")
    second = prepared(tmp_path, model=model, corpus="health", words="checkpoint")
    old, new = weights_of(first.model), weights_of(second.model)
    alike = most_alike(second.vocabulary.intents, first.vocabulary.intents)
    assert any(alike)
    for row, places in zip(new["intent_dense_weight"], alike):
        expected = old["intent_dense_weight"][places or slice(None)].mean(axis=0)
        np.testing.assert_allclose(row, expected, rtol=1e-5)
    size = len(second.vocabulary.slots)
    assert new["slot_crf_transitions"].shape == (size, size)
    assert new["slot_crf_transitions"].std() == 0  # the first run's were all 1


@pytest.mark.parametrize("ours, theirs", [("last", "all_layers"), ("all_layers", "last")])
def test_heads_of_other_features_share_the_weights_of_the_pooled_vector(ours, theirs, tmp_path):
    heads = BERT.replace("}", ", trained: heads, heads: names, features: FEATURES}")
    folder, first = run(tmp_path, heads.replace("FEATURES", theirs))
    model = heads.replace("FEATURES", ours).replace("START", str(folder))
    second = prepared(tmp_path, model=model, corpus="health", words="checkpoint")
    old, new = (weights_of(found.model)["intent_dense_weight"] for found in (first, second))
    alike = most_alike(second.vocabulary.intents, first.vocabulary.intents)
    expected = np.stack([old[rows or slice(None)].mean(axis=0) for rows in alike])
    np.testing.assert_allclose(new[:, :8], expected[:, :8], rtol=1e-5)
    assert not new[:, expected.shape[1] :].any()


def test_a_run_of_other_sizes_is_refused(tmp_path):
    folder, _ = run(tmp_path, BERT)
    larger = BERT.replace("size: 8", "size: 12").replace("START", str(folder))
    with pytest.raises(UserError, match=r"has model.hidden_size: 8, not 12; leave"):
        prepared(tmp_path, model=larger, words="checkpoint")


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(UserError, match="nothing"):
        prepared(tmp_path, model=CLC.replace("START", str(tmp_path / "nothing")))
