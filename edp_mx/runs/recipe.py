"""The settings of a measured run, carried over to another n and ε."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional

from edp_mx.dp.accounting.plan import Plan
from edp_mx.runs.early_plan import load_planned, plan_of_config
from edp_mx.runs.file_types import Record
from edp_mx.runs.measurements import Measurement
from edp_mx.runs.records import value_of
from edp_mx.runtime.yaml_tree import leaves, read_layers

LAUNCHER = Path("launch/train.sh")
_MODEL, _MECHANISM = "configs/model/{family}.yaml", Path("configs/mechanism/dp_sgd.yaml")
_HEADS, _ENCODER = Path("configs/recipe/heads.yaml"), Path("configs/recipe/encoder.yaml")
# Settings that are the corpus' own, are left to the user, or change no result.
_LEFT_OUT = ("name", "privacy.unit", "privacy.assume_public", "privacy.noise_multiplier",
             "privacy.delta", "privacy.delta_mode", "training.seed",
             "training.evaluation_batch_size", "training.tracking",
             "training.watchdog_seconds")  # fmt: skip
# Settings that ε depends on.
_COUNTED = ("training.epochs", "training.steps_per_epoch", "privacy.sampler", "privacy.adjacency")
_DECAY = ("privacy.decay.kind", "privacy.decay.rate")
_WORDS = ("data.vocabulary.source", "checkpoint")  # the words of the public start


@dataclass(frozen=True)
class Recipe:
    """The settings to train with n utterances at ε.

    Attributes:
        source: the run whose settings these are.
        batch_size: the same share of the training part, a multiple of the workers.
        start: the run or checkpoint to start from; None for one that is not known yet.
    """

    source: Measurement
    num_examples: int
    epsilon: float
    batch_size: int
    start: Optional[Path] = None

    @classmethod
    def of(
        cls,
        source: Measurement,
        *,
        num_examples: int,
        epsilon: float,
        start: Optional[Path] = None,
    ) -> Recipe:
        workers = source.records[0].workers
        share = source.batch_size / source.n
        whole = max(1, round(share * num_examples / workers))
        return cls(source, num_examples, epsilon, workers * whole, start)

    @property
    def record(self) -> Record:
        """The record of the first seed."""
        return self.source.records[0]

    def setting(self, key: str) -> Any:
        """Return a setting of the run, by its dotted key."""
        return value_of(self.record, key)

    def plan(self) -> Plan:
        """Return the plan of a training with these settings, whose z₀ meets ε."""
        return plan_of_config(
            load_planned((), self._planned()),
            num_workers=self.record.workers,
            num_examples=self.num_examples,
        )

    def calibration(self) -> str:
        """Return the command that finds the same noise multiplier."""
        sizes = f"--num-examples {self.num_examples} --workers {self.record.workers}"
        return f"edp-mx calibrate {sizes} --set {' '.join(map(shlex.quote, self._planned()))}"

    def _planned(self) -> List[str]:
        """The settings that ε depends on, for `--set`."""
        given = {
            "privacy.mechanism": "dp_sgd",
            "privacy.target_epsilon": self.epsilon,
            "training.batch_size": self.batch_size,
            **{key: self.setting(key) for key in _COUNTED if self.setting(key) is not None},
        }
        if self.setting("privacy.decay.kind") != "none":
            given.update({key: self.setting(key) for key in _DECAY})
        return [f"{key}={_written(key, value)}" for key, value in given.items()]

    def command(self) -> str:
        """Return the command that trains with these settings; `mine.yaml` is the user's corpus.

        In a clone, only the differences from the shipped configurations are set.
        """
        layers = self._layers()
        base = Path(_MODEL.format(family=self.source.family))
        under = [base, *layers] if base.exists() else layers
        settings = self._settings(dict(leaves(read_layers(under)[0])) if under else {})
        words = [f"{key}={_written(key, value)}" for key, value in sorted(settings.items())]
        start = "edp-mx train"
        if LAUNCHER.exists():
            start = f"NP={self.record.workers} {LAUNCHER}"
        files = " ".join(["mine.yaml", *map(str, layers)])
        return f"{start} {files} --set {' '.join(map(shlex.quote, words))}"

    def _layers(self) -> List[Path]:
        """The shipped configuration that is nearest, where there is one."""
        file = _HEADS if self.setting("model.trained") == "heads" else _MECHANISM
        if self.source.family == "bert" and self.setting("model.token_layer") is not None:
            file = _ENCODER
        return [file] if file.exists() else []

    def _settings(self, base: Mapping[str, Any]) -> Dict[str, Any]:
        """The settings in which the run differs from a base, with the new ε and batch size."""
        from edp_mx.config import default_of
        from edp_mx.models.registry import FAMILIES

        wanted = {key: self.setting(key) for key in (*base, *self.record.settings)}
        wanted["privacy.target_epsilon"] = self.epsilon
        wanted["training.batch_size"] = self.batch_size
        started, left_out = {}, {*_LEFT_OUT}
        if self.start is not None:  # which brings its sizes
            started = {"model.start_from": str(self.start)}
            sizes = FAMILIES[self.source.family].sizes
            left_out |= {*started, "model.checkpoint", *(f"model.{key}" for key in sizes)}
        settings = {
            key: value
            for key, value in wanted.items()
            if key not in left_out
            if not key.startswith("data.") or (key, value) == _WORDS
            if value != base.get(key, default_of(key, self.source.family))
        }
        return {**settings, **started}


def _written(key: str, value: Any) -> str:
    """A value for `--set`; a file of which a record has only the hash is named in capitals."""
    if isinstance(value, str):
        return key.split(".")[-1].upper() if value.startswith("sha256:") else value
    return json.dumps(value)
