"""GPT-2's checkpoints: the same scores as `transformers`, and what is refused."""

import json

import numpy as np
import pytest
from golden.make_gpt2_logits import GOLDEN, PIECES, SHAPES, pieces_of
from safetensors import safe_open
from support.gpt2 import scorer_of, scores_of, tensors_of, write_folder

from edp_mx.errors import UserError
from edp_mx.models.gpt2.checkpoint import (
    checkpoint_of,
    read_checkpoint,
    read_config,
    write_checkpoint,
)


@pytest.mark.parametrize("case", SHAPES)
def test_scores_agree_with_transformers(case, tmp_path):
    scorer = scorer_of(write_folder(tmp_path, case))
    with np.load(GOLDEN) as golden:
        wanted = golden[f"{case}_logits"]
    np.testing.assert_allclose(scores_of(scorer, pieces_of(case)), wanted, atol=1e-4, rtol=0)


def test_old_and_padded_files_are_read_alike(tmp_path):
    """GPT-2's own has no "transformer." and masks as tensors; others a copy of the output layer."""
    plain = {name.split(".", 1)[1]: values for name, values in tensors_of("tiny").items()}
    masks = {f"h.{i}.attn.bias": np.ones((1, 1, 16, 16), np.float32) for i in range(2)}
    wanted = read_checkpoint(write_folder(tmp_path / "new")).tensors
    padded = np.concatenate([plain["wte.weight"], np.ones((3, 8), np.float32)])
    more = {"wte.weight": padded, "lm_head.weight": padded}
    tensors = {**plain, **masks, **more}
    folder = write_folder(tmp_path / "old", tensors=tensors, settings={"vocab_size": 43})
    found = read_checkpoint(folder).tensors
    assert found.keys() == wanted.keys()
    for name, values in wanted.items():
        np.testing.assert_array_equal(found[name], values)


def test_what_is_left_out_of_its_settings_is_the_smallest_gpt2(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "gpt2", "n_inner": null}')
    config = read_config(tmp_path / "config.json")
    sizes = (config.num_layers, config.num_heads, config.hidden_size, config.intermediate_size)
    assert sizes == (12, 12, 768, 3072) and config.max_positions == 1024


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"model_type": "bert"}, "model_type is 'bert', but a gpt2 can be read only with 'gpt2'"),
        ({"activation_function": "relu"}, "activation_function is 'relu'"),
        ({"tie_word_embeddings": False}, "tie_word_embeddings is False"),
        ({"n_head": 3}, "hidden_size must be a multiple of the 3 heads, not 8"),
        ({"n_layer": "two"}, "num_layers"),
        ({"n_embd": None, "n_inner": None}, "hidden_size"),
        ({"vocab_size": 7}, "has 40 pieces, but vocab_size in config.json is 7"),
        ({"n_positions": 20}, r"wpe.weight has shape \(16, 8\), .* make it \(20, 8\)"),
        ({"n_layer": 3}, "lacks the tensor h.2.ln_1.weight"),
    ],
)
def test_another_model_is_refused(settings, told, tmp_path):
    with pytest.raises(UserError, match=told):
        read_checkpoint(write_folder(tmp_path, settings=settings))


def test_an_output_layer_of_its_own_is_refused(tmp_path):
    tensors = {**tensors_of("tiny"), "lm_head.weight": np.ones((len(PIECES), 8), np.float32)}
    with pytest.raises(UserError, match="lm_head.weight is not wte.weight"):
        read_checkpoint(write_folder(tmp_path, tensors=tensors))


def test_what_is_written_is_read_again_with_the_names_of_transformers(tmp_path):
    folder = write_folder(tmp_path / "a", "wide")
    scorer, tokenizer = scorer_of(folder), read_checkpoint(folder).tokenizer
    made = checkpoint_of(scorer.decoder, tokenizer)
    write_checkpoint(tmp_path / "b", config=made.config, tokenizer=tokenizer, tensors=made.tensors)
    again = read_checkpoint(tmp_path / "b")
    assert again.config == made.config and again.tokenizer == tokenizer
    with safe_open(tmp_path / "b" / "model.safetensors", framework="np") as file:
        found = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    wanted = tensors_of("wide")
    assert found.keys() == wanted.keys()
    for name, values in wanted.items():
        np.testing.assert_array_equal(found[name], values)
    settings = json.loads((tmp_path / "b" / "config.json").read_text())
    assert settings["model_type"] == "gpt2" and settings["eos_token_id"] == len(PIECES) - 1
