"""Makes `bert_hidden_states.npz` with `transformers`, whose BertModel is the reference.

Needs an environment of its own with torch, transformers and numpy (made with torch 2.13.0 and
transformers 5.23.0, float32, CPU). The weights are drawn by name from a seed, so that the file
holds only what comes out: of each case the embeddings' output, every layer's, the pooled vectors,
and the masked-LM head's scores.

    python make_bert_hidden_states.py                   # writes the golden file beside this one
    python make_bert_hidden_states.py --save DIR        # the same BERTs as transformers writes them
    edp-mx checkpoint import DIR/tiny --out OUT/tiny    # ... and for each case
    python make_bert_hidden_states.py --compare OUT     # reads ours with transformers, compares
"""

import argparse
import zlib
from pathlib import Path

import numpy as np

GOLDEN = Path(__file__).parent / "bert_hidden_states.npz"
PIECES = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghijklmnopqrstuvwxyz", *"012345678")
COMMON = {"vocab_size": len(PIECES), "max_position_embeddings": 16, "pad_token_id": 0}
SIZES = ("num_hidden_layers", "num_attention_heads", "hidden_size", "intermediate_size")
CASES = {
    "tiny": {**COMMON, **dict(zip(SIZES, (4, 12, 24, 40)))},
    "relu": {**COMMON, **dict(zip(SIZES, (3, 2, 18, 12))), "hidden_act": "relu"},
    "paper": {**COMMON, **dict(zip(SIZES, (4, 12, 312, 1200)))},
}
CASES["relu"]["layer_norm_eps"] = 0.01  # large enough to be missed if it were lost
LENGTHS = {"tiny": (12, 2, 16, 7), "relu": (9, 3, 1), "paper": (11, 4)}


def draw(name, shape):
    """Values of a tensor: norms about the identity, all else wide enough for attention to choose.

    RandomState's stream is frozen for good; that of default_rng is not.
    """
    values = np.random.RandomState(zlib.crc32(name.encode())).standard_normal(tuple(shape))
    if "LayerNorm" in name:
        return (0.2 * values + name.endswith("weight")).astype(np.float32)
    if "embeddings" in name:
        return values.astype(np.float32)
    width = 2.0 if "attention.self" in name else 1.0
    return (width / np.sqrt(shape[-1]) * values).astype(np.float32)


def pieces_of(case):
    """Ids, padded with 0, and their lengths. Shapes: (N, P), (N,)."""
    lengths = np.array(LENGTHS[case])
    ids = np.random.RandomState(len(case)).randint(5, len(PIECES), (len(lengths), lengths.max()))
    return np.where(np.arange(lengths.max()) < lengths[:, None], ids, 0), lengths


def reference(case):
    """BertForMaskedLM with the drawn weights."""
    import torch
    from transformers import BertConfig, BertForMaskedLM, BertModel

    settings = BertConfig(**CASES[case], attn_implementation="eager")
    model = BertForMaskedLM(settings)
    model.bert = BertModel(settings)  # the masked LM's own has no pooler
    model.tie_weights()
    with torch.no_grad():
        for name, values in model.named_parameters():
            values.copy_(torch.from_numpy(draw(name.replace("bert.", "", 1), values.shape)))
    return model.eval()


def outputs(model, case):
    """Hidden states at the places of pieces, and the pooled. Shapes: (L + 1, Σ P_n, H), (N, H)."""
    import torch

    pieces, lengths = pieces_of(case)
    mask = np.arange(pieces.shape[1]) < lengths[:, None]  # (N, P)
    with torch.no_grad():
        found = model(
            torch.from_numpy(pieces),
            attention_mask=torch.from_numpy(mask.astype(np.int64)),
            output_hidden_states=True,
        )
    states = np.stack([states.numpy()[mask] for states in found.hidden_states])
    return states, found.pooler_output.numpy()


def save(folder):
    """Each case as `transformers` writes it, with a tokenizer, and its weights as .bin too."""
    import torch
    from transformers import BertTokenizer

    for case in CASES:
        model, here = reference(case), folder / case
        model.save_pretrained(here)
        (here / "vocab.txt").write_text("\n".join(PIECES) + "\n")
        BertTokenizer.from_pretrained(here).save_pretrained(here)
        pickled = folder / f"{case}_bin"
        pickled.mkdir(exist_ok=True)
        for name in ("config.json", "vocab.txt", "tokenizer_config.json"):
            (pickled / name).write_bytes((here / name).read_bytes())
        torch.save(model.state_dict(), pickled / "pytorch_model.bin")


def compare(folder):
    """`transformers`' outputs with what edp_mx wrote, against the golden file."""
    from transformers import BertForMaskedLM, BertModel, BertTokenizer

    with np.load(GOLDEN) as golden:
        for here in sorted(folder.iterdir()):
            case = here.name.replace("_bin", "")
            model, told = BertModel.from_pretrained(
                here, attn_implementation="eager", output_loading_info=True
            )
            states, pooled = outputs(model.eval(), case)
            head = BertForMaskedLM.from_pretrained(here)
            heads = [
                float(np.abs(values.detach().numpy() - draw(name, values.shape)).max())
                for name, values in head.named_parameters()
                if name.startswith("cls.")
            ]
            tokens = BertTokenizer.from_pretrained(here)(" ".join("hug"))["input_ids"]
            wanted = [PIECES.index(piece) for piece in ("[CLS]", *"hug", "[SEP]")]
            print(
                here.name,
                "states differ by", np.abs(states - golden[f"{case}_states"]).max(),
                "pooled by", np.abs(pooled - golden[f"{case}_pooled"]).max(),
                "masked-LM head by", max(heads),
                "missing", told["missing_keys"],
                "pieces agree", tokens == wanted,
            )  # fmt: skip


def main():
    """Writes the golden file, or checks what edp_mx writes."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--save", type=Path)
    parser.add_argument("--compare", type=Path)
    arguments = parser.parse_args()
    if arguments.save:
        save(arguments.save)
    elif arguments.compare:
        compare(arguments.compare)
    else:
        import torch

        arrays = {}
        for case in CASES:
            model = reference(case)
            states, pooled = outputs(model.bert, case)
            scores = model.cls(torch.from_numpy(states[-1])).detach().numpy()  # (Σ P_n, V)
            arrays.update({f"{case}_states": states, f"{case}_pooled": pooled})
            arrays[f"{case}_scores"] = scores
        np.savez_compressed(GOLDEN, **arrays)
        print(GOLDEN, GOLDEN.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
