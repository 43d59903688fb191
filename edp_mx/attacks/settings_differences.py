"""What a model that an attack trained, or learned on, has other than the attacked run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, Iterator, Tuple

import yaml

from edp_mx.attacks.training import without_model_selection
from edp_mx.config import ExperimentConfig, dump_config, load_config
from edp_mx.errors import UserError
from edp_mx.runs.run_directory import RunDirectory

Differences = Dict[str, Dict[str, Any]]  # a key -> its value in "run" and in "trained"
OTHER_SETTINGS = "settings other than the run's"
OTHER_MODEL_SETTINGS = "settings of the model other than the run's"


def settings_differences(run: ExperimentConfig, trained: ExperimentConfig) -> Differences:
    """Each key that two configurations have different values for, in their order.

    Args:
        run: of the attacked run.
        trained: of the other model.

    Edge cases: a key that only one of them has is null in the other. The name is no setting.

    Example:
        >>> from dataclasses import replace
        >>> from edp_mx.training.config import TrainingConfig
        >>> config = ExperimentConfig(training=TrainingConfig(epochs=14))
        >>> settings_differences(config, replace(config, training=TrainingConfig(epochs=3)))
        {'training.epochs': {'run': 14, 'trained': 3}}
    """
    one, other = (dict(_leaves(yaml.safe_load(dump_config(each)))) for each in (run, trained))
    return {
        key: {"run": one.get(key), "trained": other.get(key)}
        for key in {**one, **other}
        if key != "name" and one.get(key) != other.get(key)
    }


def describe_differences(found: Differences) -> str:
    """The same in words, e.g. "training.epochs 3 instead of 14"."""
    said = [f"{key} {_say(each['trained'])} instead of {_say(each['run'])}"
            for key, each in found.items()]  # fmt: skip
    return ", ".join(said) or "none"


def trained_model_facts(run: RunDirectory, folder: Path) -> Dict[str, Differences]:
    """For an attack's facts: how the models that it trained for itself differ from the run.

    Args:
        folder: of the attack, with the `config.yaml` that they were trained by.

    Raises:
        UserError: a configuration is missing or broken.
    """
    trained = without_model_selection(load_config(folder / "config.yaml"))
    return {OTHER_SETTINGS: settings_differences(load_config(run.config), trained)}


def shadow_run_facts(run: RunDirectory, shadow: RunDirectory) -> Dict[str, Any]:
    """For the facts of an attack by a shadow run: its family, and how its model differs.

    Raises:
        UserError: it is of another family.
    """
    one, other = load_config(run.config), load_config(shadow.config)
    check_family(one, other, f"--shadow {shadow.path}")
    found = settings_differences(one, other)
    return {
        "shadow family": other.model.family,
        OTHER_MODEL_SETTINGS: {
            key: each for key, each in found.items() if key.startswith("model.")
        },
    }


def check_family(run: ExperimentConfig, shadow: ExperimentConfig, name: str) -> None:
    """Refuses a shadow of another architecture: its outputs are no model of the run's.

    Args:
        name: of what brought the shadow, for the sentence.

    Raises:
        UserError: it is one.
    """
    if shadow.model.family != run.model.family:
        raise UserError(
            f"{name} is a {shadow.model.family} model, and the attacked run a {run.model.family} "
            "model: name one of the same architecture, by others the attack learns nothing"
        )


def _leaves(tree: Dict[str, Any], above: str = "") -> Iterator[Tuple[str, Any]]:
    """Each key's path with its value."""
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value


def _say(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
