"""Canaries: utterances with a random phone number in them, trained on once, ten, a hundred times.

A model is trained anew by a run's own settings with the canaries in its training part; how much
smaller its loss is for a canary than for the same utterance with other numbers is its exposure.
"""

from __future__ import annotations

import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, Sequence

import numpy as np

from edp_mx.attacks.audit.canaries import canary_losses
from edp_mx.attacks.canaries.exposure import exposure_of
from edp_mx.attacks.canaries.numbers import (
    Canary,
    CanarySettings,
    check_digits,
    draw_canaries,
    with_canaries,
)
from edp_mx.attacks.directory import attack_folder
from edp_mx.attacks.membership.scores import read_arrays, write_arrays
from edp_mx.attacks.settings_differences import trained_model_facts
from edp_mx.attacks.training import prepare_on, train_prepared
from edp_mx.config import ExperimentConfig, dump_config
from edp_mx.data.corpus import load_corpus
from edp_mx.errors import UserError
from edp_mx.runs.build import encode_part
from edp_mx.runs.prepare import Prepared
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.distributed import Workers
from edp_mx.runtime.files import read_json, write_json, write_text


def attack_by_canaries(
    path: Path,
    config: ExperimentConfig,
    settings: CanarySettings,
    workers: Workers,
    progress: Callable[..., Iterable[Any]],
) -> Dict[str, Any]:
    """Trains with canaries, measures each, and writes `RUN/attack-canaries/`.

    Args:
        config: the run's.

    Returns:
        As `write_exposures`.

    Raises:
        UserError: the corpus is gone, or the vocabulary cannot tell digits apart.
    """
    run = RunDirectory.existing(path)
    folder = attack_folder(run, "canaries")
    corpus = load_corpus(config.data)
    canaries = draw_canaries(corpus, config, settings)
    prepared = prepare_on(with_canaries(corpus, canaries), config, workers)
    check_digits(prepared.vocabulary)
    work = folder / ".training"
    shutil.rmtree(work, ignore_errors=True)  # of one that was interrupted
    work.mkdir(parents=True)
    try:
        train_prepared(prepared, config, workers, RunDirectory(work), progress)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    losses = [
        _losses(prepared, config, canary, workers)
        for canary in progress(canaries, "candidates", len(canaries))
    ]
    write_text(folder / "config.yaml", dump_config(config))
    write_arrays(folder / "losses.npz", {f"canary_{i:03d}": one for i, one in enumerate(losses)})
    write_json(folder / "canaries.json", _as_json(settings, canaries))
    return write_exposures(run)


def write_exposures(run: RunDirectory) -> Dict[str, Any]:
    """The exposures, from the losses that were saved; written to `exposure.json`.

    Returns:
        What was written: `canaries`, for each its tokens, slots, intent and repeats, its loss and
        its exposure; `settings` of the draw; `facts`, what the model has other than the run.

    Raises:
        UserError: there are none, or they are torn.
    """
    folder = attack_folder(run, "canaries")
    about = read_json(folder / "canaries.json")
    arrays = read_arrays(folder / "losses.npz", "run `edp-mx attack RUN --canaries`")
    try:
        rows = []
        for i, canary in enumerate(about["canaries"]):
            loss, *others = arrays[f"canary_{i:03d}"].tolist()
            exposure = exposure_of(loss, np.array(others))
            rows.append({**canary, "loss": loss, **exposure.to_dict()})
        settings = about["settings"]
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"{folder / 'canaries.json'} is not ours ({error})") from error
    value = {
        "run": run.path.resolve().name,
        "settings": settings,
        "facts": trained_model_facts(run, folder),
        "canaries": rows,
    }
    write_json(folder / "exposure.json", value)
    return value


def _as_json(settings: CanarySettings, canaries: Sequence[Canary]) -> Dict[str, Any]:
    """What was inserted, for `canaries.json`."""
    return {
        "settings": {**asdict(settings), "repeats": list(settings.repeats)},
        "canaries": [
            {
                "tokens": list(canary.utterance.tokens),
                "slots": list(canary.utterance.slots),
                "intent": canary.utterance.intent,
                "repeats": canary.repeats,
            }
            for canary in canaries
        ],
    }


def _losses(
    prepared: Prepared, config: ExperimentConfig, canary: Canary, workers: Workers
) -> np.ndarray:
    """Of the canary, then of its candidates, (1 + n,)."""
    utterances = [canary.utterance, *(canary.with_number(number) for number in canary.others)]
    encoded = encode_part(config, utterances, prepared.vocabulary, "canary")
    size = config.training.evaluation_batch_size
    return canary_losses(prepared.model, encoded, workers=workers, batch_size=size)
