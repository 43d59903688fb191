"""Files of a one-run audit: everything that its verdict rests on."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from edp_mx.accounting.guarantee import Guarantee
from edp_mx.attacks.audit.canaries import Canaries
from edp_mx.attacks.audit.guessing import OneRunAudit
from edp_mx.runs.run_directory import RunDirectory, environment
from edp_mx.runtime.files import write_csv

README = """# {name}

A one-run audit of edp_mx: random utterances (canaries) were added to the training part, each by the
toss of a coin; after training the coins were guessed from the losses. The verdict is in
`audit.json`. The model was not kept.

| file | what it holds |
| --- | --- |
| `audit.json` | the lower bound on ε, its confidence, the claims, whether they are refuted |
| `canaries.csv` | for each canary its coin (1: trained on), score, text and labels |
| `scores.png`, `scores.csv` | histograms of the scores of included and of excluded canaries |
| `privacy.json` | the claims of the run: ε as published, ε that holds, what neither covers |
| `privacy_ledger.jsonl` | the releases, each written before it was made; source of the claim |
| `config.yaml` | every setting; `launch/audit.sh one-run config.yaml` repeats the audit |
| `environment.json` | command, workers, versions of packages, machine |
| `rank_<i>.log` | the log of each worker |
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
    """Write all other files, with one score per canary; `audit.json` comes last."""
    run.write("environment", environment(num_workers))
    run.write("privacy", claimed.to_dict())
    each = canaries.utterances_per_canary
    rows = [
        [
            int(canaries.is_member[i // each]),
            repr(float(scores[i // each])),
            " ".join(utterance.tokens),
            " ".join(utterance.slots),
            utterance.intent,
        ]
        for i, utterance in enumerate(canaries.utterances)
    ]
    header = ["is_member", "score", "tokens", "slots", "intent"]
    write_csv(run.path / "canaries.csv", header, rows)
    run.write("audit", {**audit.to_dict(), "settings": asdict(settings)})
