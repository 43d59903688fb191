"""Differences between the settings of an attacked run and of the models that attack it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict

from edp_mx.attacks.training import without_model_selection
from edp_mx.config import ExperimentConfig, load_config, tree_of
from edp_mx.errors import UserError
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.yaml_tree import leaves

Differences = Dict[str, Dict[str, Any]]  # key of the settings -> its values, "run" and "trained"
OTHER_SETTINGS = "settings other than the run's"
OTHER_MODEL_SETTINGS = "settings of the model other than the run's"


def settings_differences(run: ExperimentConfig, trained: ExperimentConfig) -> Differences:
    """Return the keys of two configurations whose values differ, in their order, without the name.

    Edge cases: a key that only one of them has is null in the other.

    Example:
        >>> from dataclasses import replace
        >>> from edp_mx.training.config import TrainingConfig
        >>> config = ExperimentConfig(training=TrainingConfig(epochs=14))
        >>> settings_differences(config, replace(config, training=TrainingConfig(epochs=3)))
        {'training.epochs': {'run': 14, 'trained': 3}}
    """
    one, other = (dict(leaves(tree_of(each))) for each in (run, trained))
    return {
        key: {"run": one.get(key), "trained": other.get(key)}
        for key in {**one, **other}
        if key != "name" and one.get(key) != other.get(key)
    }


def describe_differences(found: Differences) -> str:
    """Describe differences in words, e.g. "training.epochs 3 instead of 14"."""

    def text(value: Any) -> str:
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

    said = (f"{k} {text(v['trained'])} instead of {text(v['run'])}" for k, v in found.items())
    return ", ".join(said) or "none"


def trained_model_facts(run: RunDirectory, folder: Path) -> Dict[str, Differences]:
    """Return how the models that an attack trained differ from the run, for its facts.

    Their `config.yaml` is in the folder of the attack.
    """
    trained = without_model_selection(load_config(folder / "config.yaml"))
    return {OTHER_SETTINGS: settings_differences(load_config(run.config), trained)}


def shadow_run_facts(run: RunDirectory, shadow: RunDirectory) -> Dict[str, Any]:
    """Return the family of a shadow run and how its model differs, for the facts of an attack."""
    one, other = load_config(run.config), load_config(shadow.config)
    found = settings_differences(one, other)
    return {
        "shadow family": other.model.family,
        OTHER_MODEL_SETTINGS: {
            key: each for key, each in found.items() if key.startswith("model.")
        },
    }


def check_family(run: ExperimentConfig, shadow: ExperimentConfig, name: str) -> None:
    """Refuse a shadow of another architecture, whose outputs say nothing of the run's."""
    if shadow.model.family != run.model.family:
        raise UserError(
            f"{name} is a {shadow.model.family} model, and the attacked run a {run.model.family} "
            "model: the attack learns nothing from another architecture; name a shadow of the same"
        )
