"""What a one-run audit writes down: everything that its verdict rests on."""

from __future__ import annotations

import csv
import io
from dataclasses import asdict
from typing import Any

import numpy as np

from edp_mx.accounting.guarantee import Guarantee
from edp_mx.attacks.audit.canaries import Canaries
from edp_mx.attacks.audit.guessing import OneRunAudit
from edp_mx.runs.run_directory import RunDirectory, environment
from edp_mx.runtime.files import write_text

README = """# {name}

A one-run audit of edp_mx: a model was trained on a corpus with random utterances (canaries) in it,
each by the toss of a coin, and then asked which were in. Read `audit.json` for the verdict. The
model was thrown away.

| file | what it holds |
| --- | --- |
| `audit.json` | the lower bound on ε, its confidence, the claims, whether they are refuted |
| `canaries.csv` | each canary: its coin (1: trained on), its score, its text and labels |
| `scores.png`, `scores.csv` | the scores of those in and those out, as histograms |
| `privacy.json` | what the run claims: ε as published, ε that holds, what neither covers |
| `privacy_ledger.jsonl` | what was released, each line before it was; the claim is read from it |
| `config.yaml` | every setting, written out; `launch/audit.sh one-run config.yaml` does it again |
| `environment.json` | command, workers, versions of the packages, machine |
| `rank_<i>.log` | each worker's log |
"""


def write_audit(
    run: RunDirectory,
    audit: OneRunAudit,
    *,
    scores: np.ndarray,
    canaries: Canaries,
    claimed: Guarantee,
    settings: Any,
    num_workers: int,
) -> None:
    """Fills the folder; `audit.json` comes last.

    Args:
        scores: one a canary, (m,).
        settings: a dataclass, for `audit.json`.
    """
    run.write("environment", environment(num_workers))
    run.write("privacy", claimed.to_dict())
    write_text(run.path / "canaries.csv", _as_csv(scores, canaries))
    run.write("audit", {**audit.to_dict(), "settings": asdict(settings)})


def _as_csv(scores: np.ndarray, canaries: Canaries) -> str:
    """One line per utterance of a canary, each with the canary's coin and score."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["is_member", "score", "tokens", "slots", "intent"])
    each = canaries.utterances_per_canary
    for i, utterance in enumerate(canaries.utterances):
        joined = (" ".join(utterance.tokens), " ".join(utterance.slots), utterance.intent)
        is_member, score = canaries.is_member[i // each], float(scores[i // each])
        writer.writerow([int(is_member), repr(score), *joined])
    return text.getvalue()
