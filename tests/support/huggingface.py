"""A small BERT in Hugging Face's layout, written without our own code."""

import json

import numpy as np
from golden.make_bert_hidden_states import CASES, PIECES, draw
from safetensors.numpy import save_file

from edp_mx.models.bert import BERTConfig
from edp_mx.models.checkpoints.names import shapes_of

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


def assert_same(found, wanted):
    assert found.keys() == wanted.keys()
    for name, values in wanted.items():
        assert found[name].dtype == np.float32
        np.testing.assert_array_equal(found[name], values, err_msg=name)


def broken(change):
    tensors = drawn()
    change(tensors)
    return tensors
