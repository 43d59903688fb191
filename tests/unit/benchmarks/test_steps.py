"""benchmarks/steps.py: DP-SGD of a part of a model trains that part, and nothing else; its cost."""

import subprocess
import sys

import numpy as np
import pytest
from measuring import ROOT
from steps import LEARNING_RATE, PARTS, VARIANTS, variants_of
from subjects import Subject, above_frozen, paper_model, synthetic_batch

from edp_mx.dp.weights import weights_of
from edp_mx.runtime.distributed import start

SMALL = {"num_layers": 3, "num_heads": 2, "hidden_size": 8, "intermediate_size": 12}
ENCODER = {  # what is in the names of the encoder's parameters that are trained, all of them
    "dp_sgd_heads": ("",),
    "dp_sgd_biases": ("bias", "beta"),
    "dp_sgd_lora": ("lora_",),
    "dp_sgd_rgp": ("weight",),
    "dp_sgd_prefix": ("trained_prefix_",),
    "dp_sgd_top_2": ("transformer1_", "transformer2_", "pooler_"),
}
OF_GPT2 = {**ENCODER, "dp_sgd_ghost": ("",), "dp_sgd_top_2": ("layer1_", "layer2_", "gpt2_norm_")}


def step(name, whole, batch):
    """The weights before a step of a variant, and the names of those that it moves."""
    model, batch = above_frozen(whole, batch) if name.endswith("_stored") else (whole, batch)
    before = weights_of(whole)
    assert VARIANTS[name](Subject(model, batch, workers=start()))() > 0
    return before, {n for n, values in weights_of(whole).items() if (values != before[n]).any()}


@pytest.mark.parametrize("name", PARTS)
def test_a_step_moves_what_is_trained_alone(name):
    whole = paper_model("bert", **PARTS[name], **SMALL)
    before, moved = step(name, whole, synthetic_batch("bert", examples=4, tokens=5))
    assert {n for n in moved if n.startswith(("intent_", "slot_"))}
    inside = {n for n in moved if n.startswith("bert_")}
    marks = ENCODER[name.replace("_stored", "")]
    assert all(any(mark in n for mark in marks) for n in inside)
    assert bool(inside) == ("heads" not in name)
    largest = max(np.abs(weights_of(whole)[n] - before[n]).max() for n in moved if "rgp" not in n)
    assert largest < 2 * LEARNING_RATE  # the weights stay where they are


@pytest.mark.parametrize("name", variants_of("gpt2", ["dp_sgd_ghost", *PARTS])[1:])
def test_so_does_a_step_of_a_gpt2(name):
    whole = paper_model("gpt2", num_pieces=40, **PARTS.get(name, {}), **SMALL)
    batch = synthetic_batch("gpt2", examples=4, tokens=5, num_pieces=40)
    _, moved = step(name, whole, batch)
    marks = OF_GPT2[name.replace("_stored", "")]
    assert moved and all(any(mark in n for mark in marks) for n in moved)


@pytest.mark.slow
def test_the_largest_batch_is_looked_for_and_measured():
    sizes = [f"{key}={value}" for key, value in SMALL.items()]
    command = [sys.executable, ROOT / "benchmarks" / "step_cost.py", "--model", "gpt2", "--pieces",
               "50", "--rounds", "1", "--batch", "64", "--fits", "0.6", "--verify",
               "--variants", "dp_sgd_ghost", "--sizes", *sizes]  # fmt: skip
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "gpt2: B = 64, T = 24, V = 50, " in printed
    rows = [line.split("|") for line in printed.splitlines() if line.startswith("| dp_sgd_ghost ")]
    peak, ratio, batch, there = (float(each) for each in rows[-1][2:6])
    assert ratio > 0.5 and batch > 64 and peak < there < 1.1 * 1024 * 0.6
