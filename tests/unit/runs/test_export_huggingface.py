"""What leaves for transformers gives the answers of the run, computed by PyTorch."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from support.documentation import ROOT
from support.drawn_runs import LINES, byte_level_bpe, differences, drawn_run, predicted

from edp_mx.runs.exported.huggingface import needs_modeling, write_huggingface

CLOSE = 1e-4
PEERS = Path(os.environ.get("EDP_MX_PEERS", ROOT / ".venv-peers")) / "bin" / "python"
HEADS, INFILLING = "model.trained=heads", "model.intents=infilling"
LORA = ("model.trained=lora", "model.lora_rank=2", "model.lora_alpha=1")
MODELS = {
    "all": ("intent_slot",),
    "lora": ("intent_slot", *LORA),
    "rgp": ("intent_slot", "model.trained=rgp"),
    "biases": ("intent_slot", "model.trained=biases", "model.activation=relu"),
    "mean": ("intent_slot", HEADS, "model.features=mean"),
    "all_means": ("intent_slot", HEADS, "model.features=all_means"),
    "all_layers": ("intent_slot", HEADS, "model.features=all_layers", "model.token_layer=2"),
    "infilling": ("intent_slot", INFILLING, "model.layer_norm_epsilon=0.01"),
    "infilling_before": ("intent_slot", INFILLING, "model.template='[MASK] : {}'"),
    "labels": ("classification",),
    "labels_lora": ("classification", *LORA),
    "labels_mean": ("classification", HEADS, "model.features=mean"),
    "labels_infilling": ("classification", HEADS, INFILLING, "model.features=all_layers"),
    "labels_bpe": ("classification",),
}
# Reads {folder: texts} and prints {folder: answers}; those of a class of transformers are shares.
CHILD = """
import json, sys
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer
from pathlib import Path

found = {}
for folder, texts in json.load(sys.stdin).items():
    if not (Path(folder) / "modeling.py").exists():
        reader = AutoTokenizer.from_pretrained(folder)
        model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
        with torch.no_grad():
            shares = model(**reader(texts, return_tensors="pt", padding=True)).logits.softmax(1)
        names = model.config.id2label
        found[folder] = [{names[i]: p for i, p in enumerate(row)} for row in shares.tolist()]
        continue
    sys.path.insert(0, folder)
    from modeling import Model
    found[folder] = list(Model().answers(texts))
    sys.path.pop(0)
    for name in ("modeling", "encode", "decode"):
        del sys.modules[name]
print(json.dumps(found))
"""


def uncut(trained, texts):
    """The texts that the run reads to their ends, as transformers does."""
    data, spell = trained.config.data, trained.vocabulary.tokenizer.ids
    return [
        text
        for text in texts
        if len(text.split()) <= data.max_tokens
        and 2 + sum(len(spell(token)) for token in text.split()) <= data.max_pieces
    ]


@pytest.mark.skipif(
    not PEERS.exists(), reason="it needs PyTorch: benchmarks/setup_peers.sh, or EDP_MX_PEERS"
)
def test_pytorch_gives_the_answers_of_the_run(tmp_path):
    asked, expected = {}, {}
    for name, (task, *settings) in MODELS.items():
        pieces = byte_level_bpe(tmp_path / "bpe") if name.endswith("bpe") else None
        trained = drawn_run(tmp_path / name, "bert", *settings, task=task, tokenizer=pieces)
        out = str(tmp_path / f"{name}_exported")
        write_huggingface(trained, Path(out))
        assert needs_modeling(trained) == (name not in ("labels", "labels_lora"))
        whole = needs_modeling(trained)
        texts = [*LINES[:200], "Zoë's call at 18:30?"]
        asked[out] = texts if whole else uncut(trained, texts)
        answers = predicted(trained, asked[out])
        expected[out] = answers if whole else [answer["confidences"] for answer in answers]
    ended = subprocess.run([PEERS, "-c", CHILD], input=json.dumps(asked), capture_output=True,
                           text=True, check=False, env={"OMP_NUM_THREADS": "1"})  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)
    assert found.keys() == expected.keys()
    for out, answers in expected.items():
        assert differences(answers, found[out]) < CLOSE, out
        assert len(answers) > 80
