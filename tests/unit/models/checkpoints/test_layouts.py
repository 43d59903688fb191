"""RoBERTa and DistilBERT become the BERT that computes the same as they do in `transformers`."""

import gzip
import json
from itertools import islice

import mxnet as mx
import numpy as np
import pytest
from golden.make_encoder_states import CASES, GOLDEN, SENTENCES, pieces_of, settings_of, values_of
from support.huggingface import (
    assert_same,
    new_bert,
    packaged_minilm,
    scores_of_masked_lm,
    write_folder,
)
from support.refusals import one_sentence
from tokenizers import ByteLevelBPETokenizer, Tokenizer

from edp_mx.data.tokenizer import load_tokenizer
from edp_mx.models.checkpoints.huggingface import load_bert, read_checkpoint, write_checkpoint
from edp_mx.models.checkpoints.layouts import PIECE_BIAS, POSITIONS, TOKEN_TYPES


def states_of(checkpoint, pieces, lengths):
    """The last layer's, without padding. Shapes: (N, P), (N,) → (Σ P_n, H)."""
    bert = new_bert(checkpoint.config, num_pieces=len(checkpoint.tokenizer))
    load_bert(bert, checkpoint)
    states, _ = bert(mx.nd.array(pieces, dtype="int32"), mx.nd.array(lengths))
    return states.asnumpy()[np.arange(pieces.shape[1]) < np.asarray(lengths)[:, None]]


def folder_of(case, place, dtype=np.float32):
    """A case as `transformers` writes it; its tokenizer has word pieces, which is all the same."""
    with np.load(GOLDEN) as golden:
        names, shapes = golden[f"{case}_names"].tolist(), golden[f"{case}_shapes"].tolist()
    tensors = {name: values_of(name, [n for n in shape if n]) for name, shape in zip(names, shapes)}
    halves = {name: values.astype(dtype) for name, values in tensors.items()}
    return write_folder(place, halves, settings={**dict.fromkeys(settings_of("roberta_tiny")),
                                                 **settings_of(case)})  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_states_and_scores_agree_with_transformers(case, tmp_path):
    checkpoint = read_checkpoint(folder_of(case, tmp_path))
    assert checkpoint.config.max_positions == 16 and checkpoint.has_masked_lm
    states = states_of(checkpoint, *pieces_of(case))
    scores = scores_of_masked_lm(checkpoint.config, checkpoint.tensors, states[:12])
    with np.load(GOLDEN) as golden:
        np.testing.assert_allclose(states, golden[f"{case}_states"], atol=1e-5, rtol=1e-5)
        np.testing.assert_allclose(scores, golden[f"{case}_scores"][:12], atol=3e-5, rtol=1e-5)


@pytest.mark.parametrize("case", ["roberta_tiny", "distilbert_tiny"])
def test_written_again_it_is_a_bert_with_the_same_tensors(case, tmp_path):
    read = read_checkpoint(folder_of(case, tmp_path / "a", np.float16))
    assert {values.dtype for values in read.tensors.values()} == {np.dtype(np.float32)}
    write_checkpoint(
        tmp_path / "b", config=read.config, tokenizer=read.tokenizer, tensors=read.tensors
    )
    again = read_checkpoint(tmp_path / "b")
    assert again.config == read.config
    assert_same(again.tensors, read.tensors)
    assert read.tensors[POSITIONS].shape == (16, 24) and read.tensors[PIECE_BIAS].shape == (40,)
    first, second = read.tensors[TOKEN_TYPES]
    np.testing.assert_array_equal(first, second)
    assert first.any() == (case == "roberta_tiny")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            {"model_type": "gpt2"},
            "model_type is 'gpt2'; only bert, roberta, distilbert .* the same; "
            "model.checkpoint takes a GPT-2's folder as it is, with model.family: gpt2",
        ),
        ({"model_type": ["roberta"]}, r"model_type is \['roberta'\]; only bert.* the same$"),
        ({"pad_token_id": 0}, "pad_token_id is 0, but it can be read only with 1"),
        ({"type_vocab_size": 2}, "type_vocab_size is 2, but it can be read only with 1"),
        ({"max_position_embeddings": 20}, r"shape \(18, 24\), but the sizes .* make it \(20, 24\)"),
    ],
)
def test_what_is_no_roberta_is_refused(change, told, tmp_path):
    folder = folder_of("roberta_tiny", tmp_path)
    settings = {**settings_of("roberta_tiny"), **change}
    (folder / "config.json").write_text(json.dumps(settings))
    one_sentence(told, read_checkpoint, folder)


@pytest.fixture(scope="module")
def minilm():
    return packaged_minilm()


def test_minilm_agrees_with_transformers(minilm):
    checkpoint = read_checkpoint(minilm)
    special = checkpoint.tokenizer.special_ids
    rows = [
        [special.cls, *(i for word in text.split() for i in checkpoint.tokenizer.ids(word)),
         special.sep]
        for text in SENTENCES
    ]  # fmt: skip
    lengths = [len(row) for row in rows]
    padded = np.array([[*row, *[0] * (max(lengths) - len(row))] for row in rows])
    states = states_of(checkpoint, padded, lengths)
    with np.load(GOLDEN) as golden:
        np.testing.assert_allclose(states, golden["minilm_states"], atol=1e-5, rtol=1e-5)


@pytest.fixture(scope="module")
def lines(corpora):
    """Ten thousand lines of public text, with single blanks."""
    text = corpora / "text" / "dstc8_user.txt.gz"
    if not text.exists():
        pytest.skip(f"{text} is not there")
    with gzip.open(text, "rt", encoding="utf-8") as file:
        return [" ".join(line.split()) for line in islice(file, 10_000)]


def assert_same_pieces(tokenizer, library, lines):
    library.no_truncation()
    library.no_padding()
    for line, wanted in zip(lines, library.encode_batch(lines, add_special_tokens=False)):
        assert [i for word in line.split() for i in tokenizer.ids(word)] == wanted.ids, line


def test_the_pieces_of_ten_thousand_lines_are_those_of_its_own_tokenizer(minilm, lines):
    library = Tokenizer.from_file(str(minilm / "tokenizer.json"))
    assert_same_pieces(read_checkpoint(minilm).tokenizer, library, lines)


@pytest.mark.parametrize("is_one_file", [True, False])
def test_the_byte_level_pieces_of_ten_thousand_lines(is_one_file, lines, tmp_path):
    library = ByteLevelBPETokenizer(add_prefix_space=True)
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    library.train_from_iterator(lines, vocab_size=4000, special_tokens=special)
    if is_one_file:
        library.save(str(tmp_path / "tokenizer.json"))
    else:  # as the first RoBERTas were published: vocab.json and merges.txt
        library.save_model(str(tmp_path))
    ours = load_tokenizer(tmp_path)
    assert ours.special_ids == (1, 3, 0, 2, 4)
    assert_same_pieces(ours, library, lines)
