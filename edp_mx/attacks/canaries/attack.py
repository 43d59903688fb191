"""Exposure of canaries: utterances with random phone numbers, in a model that is trained anew.

It compares the loss of a canary with the losses of the same utterance with other numbers.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any, Dict

import numpy as np

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
from edp_mx.dp.weights import write_arrays
from edp_mx.errors import UserError
from edp_mx.runs.build import encode_part
from edp_mx.runs.prepare import prepare_corpus
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.distributed import Workers
from edp_mx.runtime.files import write_json, write_text
from edp_mx.runtime.json_text import read_json
from edp_mx.runtime.npz import read_arrays
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
    """
    run = RunDirectory.existing(path)
    folder = attack_folder(run, "canaries")
    corpus = load_corpus(config.data)
    canaries = draw_canaries(corpus, config, settings)
    inside = to_train_on(corpus, with_canaries(corpus, canaries).train)
    prepared = prepare_corpus(inside, config, workers)
    check_digits(prepared.vocabulary)
    train_prepared(prepared, config, workers, folder / ".training", progress)
    losses: Dict[str, np.ndarray] = {}  # of the canary and of its candidates, (1 + n,)
    for i, canary in enumerate(progress(canaries, "candidates", len(canaries))):
        utterances = [canary.utterance, *(canary.with_number(number) for number in canary.others)]
        encoded = encode_part(config, utterances, prepared.vocabulary, "canary")
        losses[f"canary_{i:03d}"] = losses_of(
            prepared.model, encoded, config=config, workers=workers
        )
    write_text(folder / "config.yaml", dump_config(config))
    write_arrays(folder / "losses.npz", losses, compress=True)
    said = ("tokens", "slots", "intent")
    inserted = [
        {**{key: getattr(canary.utterance, key) for key in said}, "repeats": canary.repeats}
        for canary in canaries
    ]
    write_json(folder / "canaries.json", {"settings": asdict(settings), "canaries": inserted})
    return write_exposures(run)


def write_exposures(run: RunDirectory) -> Dict[str, Any]:
    """Compute the exposures from the saved losses and write `exposure.json`.

    Returns:
        What was written: `canaries`, with tokens, slots, intent, repeats, loss and exposure;
        `settings` of the draw; `facts`, how the settings of the model differ from the run's.
    """
    folder = attack_folder(run, "canaries")
    about = read_json(folder / "canaries.json")
    advice = "run `edp-mx attack RUN --canaries`"
    arrays = read_arrays(folder / "losses.npz", "a file of losses", advice=advice)
    try:
        rows = []
        for i, canary in enumerate(about["canaries"]):
            loss, *others = arrays[f"canary_{i:03d}"].tolist()
            exposure = exposure_of(loss, np.array(others))
            rows.append({**canary, "loss": loss, **asdict(exposure)})
        settings = about["settings"]
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"{folder / 'canaries.json'} is damaged ({error})") from error
    value = {
        "run": run.path.resolve().name,
        "settings": settings,
        "facts": trained_model_facts(run, folder),
        "canaries": rows,
    }
    write_json(folder / "exposure.json", value)
    return value
