"""The settings of a run's `config.yaml` that are read of runs of any version."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from edp_mx.runtime.limits import MOST_COUNTED
from edp_mx.runtime.structured import AsRead


@dataclass(frozen=True)
class WrittenCorpus(AsRead):
    """`data:` in a run's `config.yaml`."""

    corpus: str


@dataclass(frozen=True)
class WrittenModel(AsRead):
    """`model:` in a run's `config.yaml`."""

    family: str = "clc"


@dataclass(frozen=True)
class WrittenTraining(AsRead):
    """`training:` in a run's `config.yaml`."""

    epochs: Optional[int] = None
    LIMITS = {"epochs": (1, MOST_COUNTED)}


@dataclass(frozen=True)
class WrittenPrivacy(AsRead):
    """`privacy:` in a run's `config.yaml`."""

    mechanism: str
    target_epsilon: Optional[float] = None


@dataclass(frozen=True)
class WrittenSettings(AsRead):
    """`config.yaml` of a run, as far as anything is read from it as it was written."""

    task: Optional[str] = None
    data: Optional[WrittenCorpus] = None
    model: WrittenModel = WrittenModel()
    training: WrittenTraining = WrittenTraining()
    privacy: Optional[WrittenPrivacy] = None
