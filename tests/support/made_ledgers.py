"""Ledgers as a run writes them, without running one, and with lines that no run writes."""

from pathlib import Path

from edp_mx.dp.accounting.chain import Chain
from edp_mx.dp.accounting.decay import Decay
from edp_mx.dp.accounting.ledger import VERSION, LedgerFile
from edp_mx.dp.accounting.plan import Plan
from edp_mx.dp.accounting.release import Release


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


def write_ledger(path: Path, plan, lines, tail="") -> Path:
    """A ledger file with any lines, whose hashes hold; `tail` is what a crash left."""
    chain = Chain()
    head = plan if isinstance(plan, dict) else plan.without_layer_scales().to_dict()
    whole = [{"version": VERSION, "plan": head}, *lines]
    path.write_bytes(b"".join(map(chain.add, whole)) + tail.encode())
    return path


def run_with(folder: Path, plan, lines, tail="") -> Path:
    """A folder with nothing but a ledger."""
    folder.mkdir(parents=True, exist_ok=True)
    write_ledger(folder / "privacy_ledger.jsonl", plan, lines, tail)
    return folder


def plan_with(release=None, **changes) -> Plan:
    """A plan of four shuffled epochs on ATIS with eight workers, as the head of a ledger has it."""
    step = {"unit": "micro_batch", "num_workers": 8, "micro_batch_size": 8, "max_grad_norm": 1.0,
            "adjacency": "replace_one", "variant": "calibrated"}  # fmt: skip
    values = {"release": Release(**{**step, **(release or {})}), "noise_multiplier": 8.0,
              "decay": Decay(), "epochs": 4, "steps_per_epoch": 69, "num_records": 4478,
              "delta": 0.5 / 4478}  # fmt: skip
    return Plan(**{**values, **changes})


def poisson_plan(release=None, **changes) -> Plan:
    """Of 3 epochs of 70 steps, q = 64/4480."""
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


def run_of(folder: Path, plan: Plan, entries=None, scales=None, tail="") -> Path:
    """A folder with nothing but such a ledger."""
    write_plan(folder / "privacy_ledger.jsonl", plan, entries, scales, tail)
    return folder
