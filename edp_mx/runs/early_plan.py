"""The plan of a configuration, as far as it is known before any data is read."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Optional, Sequence, Tuple

from edp_mx.dp.accounting.config import PrivacyConfig
from edp_mx.dp.accounting.plan import Plan
from edp_mx.dp.accounting.samplers import Sizes, sizes_of
from edp_mx.dp.accounting.units import UNITS
from edp_mx.dp.planning import plan_of, settled
from edp_mx.errors import UserError
from edp_mx.runtime.config_files import read_settings
from edp_mx.training.config import TrainingConfig


@dataclass(frozen=True)
class PlannedConfig:
    """The settings that ε depends on, which `--set` changes where no configuration is named."""

    privacy: PrivacyConfig = field(default_factory=PrivacyConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)


def load_planned(files: Sequence[Path], overrides: Sequence[str]) -> Any:
    """Read a configuration as `train` does; without files only what ε depends on, and no MXNet."""
    if not files:
        return read_settings((), overrides, kind=PlannedConfig)
    from edp_mx.config import load_config

    return load_config(files, overrides)


def plan_of_config(
    config: Any,
    *,
    num_workers: int,
    num_examples: Optional[int] = None,
    sample_rate: Optional[float] = None,
    layer_scales: Optional[Sequence[float]] = None,
) -> Plan:
    """Return the plan of a configuration; a target ε is turned into z₀.

    What only the data could tell is `coverage.TAKEN_AS_PUBLIC`.

    Args:
        num_examples: n, of utterances or users; without it δ must be set, and q if the sampler is
            poisson.
        sample_rate: q, in place of `training.batch_size`.
        layer_scales: α as it is, whatever the unit; left out, it is found in the training.

    Raises:
        UserError: `train` would refuse them, or a number is missing.
    """
    privacy, training = config.privacy, config.training
    if privacy.mechanism == "none":
        raise UserError(
            "privacy.mechanism is none: nothing is private and ε is infinite; choose edp_sgd or "
            "dp_sgd"
        )
    batch_size = training.batch_size
    if sample_rate is not None and num_examples is not None:
        batch_size = max(1, round(sample_rate * num_examples))
    sizes = sizes_of(
        privacy.sampler,
        batch_size=batch_size,
        num_workers=num_workers,
        micro_batches_per_worker=privacy.micro_batches_per_worker,
        num_units=num_examples,
        sample_rate=sample_rate,
        steps_per_epoch=training.steps_per_epoch,
        units=f"{UNITS[privacy.unit].record}s",
    )
    plan = plan_before_data(
        privacy, training, sizes, num_workers=num_workers, corpus_is_public=_is_public(config)
    )
    if layer_scales is not None:
        plan = replace(plan, scales_unit="norm").with_layer_scales(layer_scales)
    return settled(plan, privacy.target_epsilon, key="privacy.target_epsilon")


def plan_before_data(
    privacy: PrivacyConfig,
    training: TrainingConfig,
    sizes: Sizes,
    *,
    num_workers: int,
    corpus_is_public: bool,
    private_inputs: Tuple[str, ...] = (),
) -> Plan:
    """Return the plan of a training, before the z₀ of a target is found."""
    lengths = ("lengths",) * (training.length_buckets > 0)
    plan = plan_of(
        privacy,
        sizes,
        epochs=training.epochs,
        num_workers=num_workers,
        corpus_is_public=corpus_is_public,
        private_inputs=(*private_inputs, *lengths),
    )
    return replace(
        plan,
        chooses_checkpoint=training.checkpoint == "best_on_validation",
        stops_early=training.early_stop_patience > 0,
    )


def _is_public(config: Any) -> bool:
    if isinstance(config, PlannedConfig):
        return True
    from edp_mx.data.config import PUBLIC_CORPORA

    return config.data.corpus in PUBLIC_CORPORA
