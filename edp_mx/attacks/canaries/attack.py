"""Exposure of canaries: utterances with random phone numbers, in a model that is trained anew.

It compares the loss of a canary with the losses of the same utterance with other numbers.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any, Dict

from edp_mx.attacks.canaries.exposure import exposure_of
from edp_mx.attacks.canaries.numbers import (
    CanarySettings,
    check_digits,
    draw_canaries,
    with_canaries,
)
from edp_mx.attacks.directory import attack_folder
from edp_mx.attacks.settings_differences import trained_model_facts
from edp_mx.attacks.training import losses_of, to_train_on, train_prepared
from edp_mx.config import ExperimentConfig, dump_config
from edp_mx.data.corpus import load_corpus
from edp_mx.runs.build import encode_part
from edp_mx.runs.prepare import prepare_corpus
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.distributed import Workers
from edp_mx.runtime.files import write_json, write_text
from edp_mx.runtime.progress import Progress


def attack_by_canaries(
    path: Path,
    config: ExperimentConfig,
    settings: CanarySettings,
    workers: Workers,
    progress: Progress,
) -> Dict[str, Any]:
    """Train with canaries, measure their exposure, and write `RUN/attack-canaries/`.

    The settings are those of the run, perhaps with overrides.

    Returns:
        What `exposure.json` has: `canaries`, with tokens, slots, intent, repeats, loss and
        exposure; `settings` of the draw; `facts`, how the model's settings differ from the run's.
    """
    run = RunDirectory.existing(path)
    folder = attack_folder(run, "canaries")
    corpus = load_corpus(config.data)
    canaries = draw_canaries(corpus, config, settings)
    inside = to_train_on(corpus, with_canaries(corpus, canaries).train)
    prepared = prepare_corpus(inside, config, workers)
    check_digits(prepared.vocabulary)
    train_prepared(prepared, config, workers, folder / ".training", progress)
    rows = []
    for canary in progress(canaries, "candidates", len(canaries)):
        utterances = [canary.utterance, *(canary.with_number(number) for number in canary.others)]
        encoded = encode_part(config, utterances, prepared.vocabulary, "canary")
        losses = losses_of(prepared.model, encoded, config=config, workers=workers)  # (1 + n,)
        loss, of_it = float(losses[0]), canary.utterance
        rows.append({
            "tokens": of_it.tokens, "slots": of_it.slots, "intent": of_it.intent,
            "repeats": canary.repeats, "loss": loss, **asdict(exposure_of(loss, losses[1:])),
        })  # fmt: skip
    write_text(folder / "config.yaml", dump_config(config))
    value = {
        "run": run.path.resolve().name,
        "settings": asdict(settings),
        "facts": trained_model_facts(run, folder),
        "canaries": rows,
    }
    write_json(folder / "exposure.json", value)
    return value
