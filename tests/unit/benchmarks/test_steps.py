"""benchmarks/steps.py: DP-SGD of a part of a BERT trains that part, and nothing else."""

import numpy as np
import pytest
from steps import LEARNING_RATE, PARTS, VARIANTS
from subjects import Subject, above_frozen, paper_model, synthetic_batch

from edp_mx.runtime.distributed import start

SMALL = {"num_layers": 3, "num_heads": 2, "hidden_size": 8, "intermediate_size": 12}
ENCODER = {  # what is in the names of the encoder's parameters that are trained, all of them
    "dp_sgd_heads": ("",),
    "dp_sgd_biases": ("bias", "beta"),
    "dp_sgd_lora": ("lora_",),
    "dp_sgd_rgp": ("weight",),
    "dp_sgd_prefix": ("trained_prefix_",),
    "dp_sgd_top_2": ("transformer2_", "pooler_"),
}


def weights_of(model):
    return {name: p.data().asnumpy() for name, p in model.collect_params().items()}


@pytest.mark.parametrize("name", PARTS)
def test_a_step_moves_what_is_trained_alone(name):
    whole = paper_model("bert", **PARTS[name], **SMALL)
    batch = synthetic_batch("bert", examples=4, tokens=5)
    is_stored = name.endswith("_stored")
    model, batch = above_frozen(whole, batch) if is_stored else (whole, batch)
    before = weights_of(whole)
    assert VARIANTS[name](Subject(model, batch, workers=start()))() > 0
    moved = {n for n, values in weights_of(whole).items() if (values != before[n]).any()}
    assert {n for n in moved if n.startswith(("intent_", "slot_"))}
    inside = {n for n in moved if n.startswith("bert_")}
    marks = ENCODER[name.replace("_stored", "")]
    assert all(any(mark in n for mark in marks) for n in inside)
    assert bool(inside) == ("heads" not in name)
    largest = max(np.abs(weights_of(whole)[n] - before[n]).max() for n in moved if "rgp" not in n)
    assert largest < 2 * LEARNING_RATE  # the weights stay where they are
