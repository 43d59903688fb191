"""Makes `gpt2_logits.npz` with `transformers`: GPT-2s of drawn weights, their scores and texts.

Needs the environment of benchmarks/setup_peers.sh (made with torch 2.13.0 and transformers 5.23.0,
float32, CPU). Of each case the file holds the names and shapes of the tensors as `transformers`
writes them, the scores of all pieces behind each piece, and the pieces that greedy and beam search
put behind a prompt.

    python make_gpt2_logits.py    # writes the golden file beside this one
"""

import zlib
from pathlib import Path

import numpy as np

GOLDEN = Path(__file__).parent / "gpt2_logits.npz"
END = "<|endoftext|>"
PIECES = (*"abcdefghijklmnopqrstuvwxyz", "Ġ", *"012345678", "Ġa", "Ġab", "ab", END)
SIZES = ("n_layer", "n_head", "n_embd", "n_inner", "n_positions")
SHAPES = {"tiny": (2, 2, 8, None, 16), "wide": (1, 4, 48, 100, 24), "deep": (5, 1, 12, 7, 16),
          "heads": (3, 8, 16, 64, 32), "odd": (2, 3, 21, 50, 12)}  # fmt: skip
NEW, BEAMS = 7, 3  # pieces behind a prompt
STOP = 1  # id of a piece that ends a text here: END itself is rarely the likeliest


def settings_of(case):
    """The config.json of a case, but for what `transformers` adds to it."""
    sizes = {key: size for key, size in zip(SIZES, SHAPES[case]) if size is not None}
    own = {"layer_norm_epsilon": 0.01} if case == "odd" else {}
    end = len(PIECES) - 1
    return {"model_type": "gpt2", "vocab_size": len(PIECES), "bos_token_id": end,
            "eos_token_id": end, **sizes, **own}  # fmt: skip


def values_of(name, shape):
    """Values of a tensor: norms about the identity, all else wide enough for attention to choose.

    RandomState's stream is frozen for good; that of default_rng is not.
    """
    values = np.random.RandomState(zlib.crc32(name.encode())).standard_normal(tuple(shape))
    if ".ln_" in name:
        return (0.2 * values + name.endswith("weight")).astype(np.float32)
    if name.endswith(("wte.weight", "wpe.weight")):
        return (0.7 * values).astype(np.float32)
    width = 2.0 if "c_attn" in name else 1.0
    return (width / np.sqrt(shape[0]) * values).astype(np.float32)


def pieces_of(case):
    """Ids of sequences as long as there are positions, of which one has an `END` inside, (2, P)."""
    shape = 2, settings_of(case)["n_positions"]
    ids = np.random.RandomState(len(case)).randint(0, len(PIECES) - 1, shape)
    ids[0, 5] = len(PIECES) - 1
    return ids


def prompts_of(case):
    """Ids of prompts that leave room for `NEW` pieces, (4, 4)."""
    return np.random.RandomState(7 + len(case)).randint(0, len(PIECES) - 1, (4, 4))


def reference(case):
    """The model of `transformers` with drawn weights."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config(**settings_of(case), attn_implementation="eager"))
    with torch.no_grad():
        for name, values in model.named_parameters():
            values.copy_(torch.from_numpy(values_of(name, values.shape)))
    return model.eval()


def continuation(model, prompts, **search):
    """The pieces behind the prompts, filled up with `STOP`, (4, NEW)."""
    import torch

    given = torch.from_numpy(prompts)
    found = model.generate(given, attention_mask=torch.ones_like(given), max_new_tokens=NEW,
                           do_sample=False, pad_token_id=STOP, eos_token_id=STOP,
                           **search)  # fmt: skip
    new = found[:, prompts.shape[1] :].numpy()
    return np.pad(new, ((0, 0), (0, NEW - new.shape[1])), constant_values=STOP)


def main():
    import torch

    made = {}
    for case in SHAPES:
        model = reference(case)
        with torch.no_grad():
            made[f"{case}_logits"] = model(torch.from_numpy(pieces_of(case))).logits.numpy()
        made[f"{case}_greedy"] = continuation(model, prompts_of(case), num_beams=1)
        made[f"{case}_beams"] = continuation(
            model, prompts_of(case), num_beams=BEAMS, length_penalty=0.0, early_stopping="never"
        )
        named = {name: values.shape for name, values in model.named_parameters()}
        made[f"{case}_names"] = np.array(list(named))
        made[f"{case}_shapes"] = np.array([[*shape, 0][:2] for shape in named.values()])
    np.savez_compressed(GOLDEN, **made)


if __name__ == "__main__":
    main()
