"""Finished runs with their ledger and all that is counted from it, without training one."""

import json
import math

from support.made_ledgers import plan_with, write_plan
from support.records import changed, record_of

from edp_mx.dp.accounting.guarantee import guarantee
from edp_mx.dp.accounting.ledger import read_ledger
from edp_mx.runs.run_directory import RunDirectory

CONFIG = """\
name: {name}
data: {{corpus: mine}}
model: {{family: clc}}
privacy: {{mechanism: edp_sgd}}
training: {{epochs: {epochs}, checkpoint: last}}
"""
# Six epochs of which each record is in one release: the Gaussian mechanism's ε is 5.392 by the
# formula of Balle and Wang, and 3.557 after three of them.
TRUE, AFTER_THREE = 5.39199, 3.55714
SIX_EPOCHS = plan_with(noise_multiplier=1.821, epochs=6)


def finished(folder, plan=SIX_EPOCHS, *, has_end=True, stated=()):
    """A run that was trained to its end.

    Args:
        has_end: whether it says with which line its ledger ended; older versions do not.
        stated: changes in the ε of its record and log.
    """
    run = RunDirectory(folder)
    run.create(folder.name, CONFIG.format(name=folder.name, epochs=plan.epochs))
    write_plan(run.ledger, plan, scales=[1.0])
    rows = []
    for count in range(1, plan.epochs + 1):
        spent = guarantee(plan, plan.entries()[:count])
        bounds = {key: getattr(spent, key) for key in ("as_published", "holds", "holds_if")}
        epsilons = {f"epsilon_{key}": bound.epsilon.value for key, bound in bounds.items()}
        rows.append({"epoch": count, "ser": 20.0, "intent_accuracy": 90.0, "slot_f1": 80.0,
                     "loss": 1.0, "seconds": 2.0, **epsilons, **dict(stated)})  # fmt: skip
    run.metrics.write_text("".join(json.dumps(row) + "\n" for row in rows))
    end = {"ledger_end": read_ledger(run.ledger).chain.end} if has_end else {}
    privacy = {**spent.to_dict(), **end}
    scores = {"ser": 0.2, "intent_accuracy": 0.9, "slot_f1": 0.8}
    epsilon = dict(stated).get("epsilon_holds")
    if epsilon is not None:
        less = {"epsilon": epsilon, "log10_epsilon": math.log10(epsilon), "conditions": []}
        bounds = dict.fromkeys(("as_published", "holds", "holds_if"), less)
    else:
        bounds = {key: privacy[key] for key in ("as_published", "holds", "holds_if")}
    run.write("environment", {"num_workers": 8, "started": "2026-01-02T03:04:05"})
    run.write("split", {"train": [f"u/{i}" for i in range(plan.num_records)]})
    run.write("layers", [])
    run.write("privacy", privacy)
    record = record_of("mine", "clc", "edp_sgd", n=plan.num_records)
    told = {**bounds, **end, "delta": plan.delta, "epochs": plan.epochs}
    run.write("record", changed(record, name=folder.name, **told))
    baseline = {"intent": "call", "ser": 0.9, "intent_accuracy": 0.3, "slot_f1": 0.0}
    run.write("results", {"test": scores, "baseline": baseline, "training_seconds": 9.0})
    return run


def cut(run, lines):
    """Leave out the last lines of a ledger, at a line's end."""
    kept = run.ledger.read_bytes().splitlines(keepends=True)[: -lines or None]
    run.ledger.write_bytes(b"".join(kept))
    return len(kept)
