"""Ledgers as a run writes them, without running one: of edp_mx 0.1, and of this version."""

import json
from pathlib import Path

from edp_mx.dp.accounting.decay import Decay
from edp_mx.dp.accounting.ledger import LedgerFile
from edp_mx.dp.accounting.plan import Plan
from edp_mx.dp.accounting.release import Release

SHUFFLED = {
    "mechanism": "edp_sgd",
    "release": {
        "num_workers": 8,
        "micro_batch_size": 8,
        "max_grad_norm": 1.0,
        "layer_scales": [1.0],
        "adjacency": "replace_one",
        "variant": "calibrated",
        "sampler": "shuffle",
    },
    "noise_multiplier": 8.0,
    "decay": {"kind": "none", "rate": 0.0},
    "epochs": 4,
    "steps": 276,
    "num_examples": 4478,
    "delta": None,
    "delta_mode": "default",
    "corpus_is_public": True,
    "sampler": "shuffle",
    "scales_source": "ones",
    "vocabulary_is_public": True,
    "seed_is_fixed": False,
    "best_checkpoint_on_validation": False,
    "stops_early": False,
    "uses_lengths": False,
}


def facts_with(release=None, **changes):
    """The head of a ledger of version 1, with some things changed."""
    return {**SHUFFLED, **changes, "release": {**SHUFFLED["release"], **(release or {})}}


def poisson_facts(**changes):
    """Of a run of 3 epochs of 70 steps, q = 64/4480."""
    changes = {"noise_multiplier": 1.5, "epochs": 3, "steps": 210, "num_examples": 4480, **changes}
    return facts_with(release={"sampler": "poisson"}, sampler="poisson", **changes)


def shuffled_line(epoch, z=8.0, effective=None):
    """What a run writes before an epoch."""
    return {
        "what": f"epoch {epoch}",
        "noise_multiplier": z,
        "sampler": "shuffle",
        "effective_noise_multiplier": z if effective is None else effective,
        "count": 1,
        "sample_rate": 1.0,
    }


def poisson_line(epoch, steps=70, z=1.5):
    """What a run writes before the steps of an epoch."""
    line = {**shuffled_line(epoch, z), "sampler": "poisson", "count": steps}
    return {**line, "sample_rate": 64 / 4480}


def write_ledger(path: Path, facts, lines, tail="") -> Path:
    """A ledger file; `tail` is what a crash left."""
    head = {"version": 1, "facts": facts}
    path.write_text("".join(json.dumps(line) + "\n" for line in [head, *lines]) + tail)
    return path


def run_with(folder: Path, facts, lines, tail="") -> Path:
    """A folder with nothing but a ledger."""
    folder.mkdir(parents=True, exist_ok=True)
    write_ledger(folder / "privacy_ledger.jsonl", facts, lines, tail)
    return folder


def plan_with(release=None, **changes) -> Plan:
    """The plan of the same run, as the head of a ledger holds it."""
    given = {**SHUFFLED["release"], "unit": "micro_batch", "layer_scales": None, **(release or {})}
    values = {
        "release": Release(**given),
        "noise_multiplier": 8.0,
        "decay": Decay(),
        "epochs": 4,
        "steps_per_epoch": 69,
        "num_records": 4478,
        "delta": 0.5 / 4478,
    }
    return Plan(**{**values, **changes})


def poisson_plan(release=None, **changes) -> Plan:
    """Of `poisson_facts`."""
    drawn = {"sampler": "poisson", "sample_rate": 64 / 4480, **(release or {})}
    values = {"noise_multiplier": 1.5, "epochs": 3, "steps_per_epoch": 70, "num_records": 4480}
    return plan_with(drawn, **{**values, "delta": 0.5 / 4480, **changes})


def write_plan(path: Path, plan: Plan, entries=None, scales=None, tail="") -> Path:
    """A ledger as a run of this version writes it; whole epochs, where no entries are given."""
    path.parent.mkdir(parents=True, exist_ok=True)
    ledger = LedgerFile(path, plan)
    entries = plan.entries() if entries is None else entries
    for entry in entries:
        if scales is not None and entry.epoch is not None:
            ledger.complete(scales)
        ledger.append(entry)
    with path.open("a", encoding="utf-8") as file:
        file.write(tail)
    return path


def untied(path: Path) -> Path:
    """Make it a ledger of version 2, whose lines have no hashes."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        del line["line"], line["sha256"]
    lines[0]["version"] = 2
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def run_of(folder: Path, plan: Plan, entries=None, scales=None, tail="") -> Path:
    """A folder with nothing but such a ledger."""
    write_plan(folder / "privacy_ledger.jsonl", plan, entries, scales, tail)
    return folder
