"""Records as runs leave them, made up."""

import json
import math

from edp_mx.runs.attack_files import AttackRecord
from edp_mx.runs.file_types import Record
from edp_mx.runs.record import run_id, settings_hash
from edp_mx.runtime.structured import structure, unstructure

SIZES = {"members": 9, "non_members": 9, "confidence": 0.95}
# `privacy.json` but for its bounds and δ.
PRIVACY = {"mechanism": "edp_sgd", "unit": "micro_batch", "num_examples": 9, "steps": 12,
           "epochs": 4, "warnings": [], "not_covered": []}  # fmt: skip
INFINITE = {"epsilon": None, "log10_epsilon": None, "reason": "the words were not public"}


def record_of(
    corpus="atis", family="bert", mechanism="dp_sgd", n=1000, epsilon=8.0, ser=0.3, **changes
):
    """A record whose ε holds if its words are public; dotted keys among `changes` are settings."""
    keys = {key for key in changes if "." in key}
    settings = {"data.corpus": corpus, "model.family": family, "training.batch_size": n // 2,
                "training.epochs": 10, **{key: changes[key] for key in keys}}  # fmt: skip
    if mechanism != "edp_sgd":
        settings["privacy.mechanism"] = mechanism
    if mechanism == "dp_sgd":
        private = {"privacy.unit": "utterance", "privacy.sampler": "poisson",
                   "privacy.adjacency": "zero_out", "privacy.target_epsilon": epsilon}  # fmt: skip
        settings = {**private, **settings}
    bound = INFINITE
    if epsilon is not None and mechanism != "none":
        bound = {"epsilon": epsilon * (1 - 1e-8), "log10_epsilon": math.log10(epsilon)}
    scores = {"ser": ser, "intent_accuracy": 1 - ser / 2, "slot_f1": 1 - ser}
    return structure({
        "name": f"{corpus}_{family}", "hash": settings_hash(settings, 1), "results_version": 1,
        "date": "2026-01-02", "corpus": corpus, "family": family, "mechanism": mechanism,
        "test": scores, "validation": {**scores, "ser": changes.get("validation", ser)},
        "as_published": INFINITE, "holds": INFINITE, "holds_if": {**bound, "conditions": ["so"]},
        "delta": changes.get("delta", 0.5 / n), "n": n, "epochs": 10, "steps": 20, "seconds": 5.0,
        "workers": changes.get("workers", 1), "machine": {}, "corpus_files": None,
        "settings": settings,
    }, Record)  # fmt: skip


def changed(record, **fields):
    """The record with other values, as a file has them."""
    return structure({**unstructure(record), **fields}, type(record))


def attack_of(record, attack="lira", title="LiRA online, aligned", *, auc=0.6, tpr=0.02, **fields):
    """What an attack on the run of a record found."""
    success = {"auc": estimate(auc), "tpr_at_fpr": {"0.01": estimate(tpr)}, **SIZES}
    return structure({
        "attack": attack, "run": run_id(record), "attacked_run": record.hash,
        "name": record.name, "shadow_corpus": None, "shadows": None,
        "success": {title: success}, **fields,
    }, AttackRecord)  # fmt: skip


def estimate(value):
    return {"value": value, "low": 0, "high": 1}


def kept(folder, records):
    """The folder, with each record in a file of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, each in enumerate(records):
        (folder / f"{number}-{each.hash}.json").write_text(json.dumps(unstructure(each)))
    return folder


def lines_in(folder):
    """(the lines of runs.jsonl, those of attacks.jsonl) in a folder of kept records."""
    paths = [folder / name for name in ("runs.jsonl", "attacks.jsonl")]
    return [path.read_text().splitlines() if path.exists() else [] for path in paths]
