"""Small GPT-2s in Hugging Face's layout, written without our own code."""

import json

import mxnet as mx
import numpy as np
from golden.make_gpt2_logits import GOLDEN, PIECES, settings_of, values_of
from safetensors.numpy import save_file

from edp_mx.models.gpt2.checkpoint import load_gpt2, read_checkpoint
from edp_mx.models.gpt2.decoder import GPT2
from edp_mx.models.gpt2.encoder import GPT2Encoder
from edp_mx.models.initialization import initialize

MERGES = ("Ġ a", "Ġa b", "a b")


def tensors_of(case):
    """The drawn tensors of a case, by the names of `transformers`."""
    with np.load(GOLDEN) as golden:
        names, shapes = golden[f"{case}_names"].tolist(), golden[f"{case}_shapes"].tolist()
    return {name: values_of(name, [n for n in shape if n]) for name, shape in zip(names, shapes)}


def write_folder(folder, case="tiny", tensors=None, *, settings=None, pieces=PIECES):
    """A case as `transformers` writes it, with the tokenizer's files of GPT-2."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({**settings_of(case), **(settings or {})}))
    (folder / "vocab.json").write_text(json.dumps({piece: i for i, piece in enumerate(pieces)}))
    (folder / "merges.txt").write_text("\n".join(["#version: 0.2", *MERGES]) + "\n")
    save_file(tensors_of(case) if tensors is None else tensors, folder / "model.safetensors")
    return folder


def scorer_of(folder):
    """Scores of the next piece by the checkpoint of a folder."""
    checkpoint = read_checkpoint(folder)
    num_pieces = len(checkpoint.tokenizer)
    encoder = GPT2Encoder(GPT2(checkpoint.config, num_pieces=num_pieces, prefix="gpt2_"))
    initialize(encoder, seed=1, context=mx.cpu(), rule=encoder.initial_values)
    load_gpt2(encoder.decoder, checkpoint)
    return encoder.next_piece_scorer()


def scores_of(scorer, pieces):
    """Of all pieces behind each, from the whole at once. Shapes: (N, P) → (N, P, V)."""
    states = scorer.decoder(mx.nd.array(pieces, dtype="int32")).asnumpy()  # (N, P, H)
    return states @ scorer.piece_vectors.data().asnumpy().T
