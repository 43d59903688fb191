"""The outcome of an attack on a run, `attack.json`, and the record that is kept of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Mapping, Optional, Tuple

from edp_mx.runs.file_types import refuse_uneven
from edp_mx.runtime.settings import SettingError
from edp_mx.runtime.structured import AsRead

WORDS_ALONE = "words alone"  # a guess by the vocabulary, which asks no model
ALIGNED = "LiRA online, aligned"  # the variant of LiRA that mostly finds most


@dataclass(frozen=True)
class Estimate(AsRead):
    """A number and its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class AttackSuccess(AsRead):
    """How well an attack separates members from others.

    Attributes:
        auc: probability that a member scores higher than a non-member; ties count half.
        tpr_at_fpr: false-positive rate, as a text -> largest share of members found within it.
    """

    auc: Estimate
    tpr_at_fpr: Mapping[str, Estimate]
    members: int
    non_members: int
    confidence: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if "0.01" not in self.tpr_at_fpr:
            raise SettingError("tpr_at_fpr", "lacks '0.01'")

    @property
    def tpr(self) -> Estimate:
        """The share of members that is found at a false-positive rate of 1 %."""
        return self.tpr_at_fpr["0.01"]


@dataclass(frozen=True)
class Success(AttackSuccess):
    """What is measured of an attack; the intervals are bootstrapped.

    Attributes:
        balanced_accuracy: at the threshold of the attack; None where it has none.
        best_balanced_accuracy: at the best threshold in hindsight.
    """

    balanced_accuracy: Optional[float]
    best_balanced_accuracy: float


@dataclass(frozen=True)
class AttackResult(Success):
    """One of the results in `attack.json`."""

    name: str
    says: str

    @property
    def success(self) -> AttackSuccess:
        """The part of it that a record keeps."""
        return AttackSuccess(
            self.auc, self.tpr_at_fpr, self.members, self.non_members, self.confidence
        )


@dataclass(frozen=True)
class AttackOutcome(AsRead):
    """`attack.json`: the headline comes first among the results; `facts` explain them."""

    attack: str
    run: str
    results: Tuple[AttackResult, ...]
    facts: Mapping[str, Any]
    origin: Optional[Mapping[str, Any]] = None

    def __post_init__(self) -> None:
        if not self.results:
            raise SettingError("results", "is empty")


@dataclass(frozen=True)
class RocCurves(AsRead):
    """The TPR of each result of an attack at the same false-positive rates."""

    fpr: Tuple[float, ...]
    tpr: Mapping[str, Tuple[float, ...]]

    def __post_init__(self) -> None:
        if not self.fpr or min(self.fpr) <= 0:
            raise SettingError("fpr", "is not a list of numbers above 0")
        refuse_uneven("tpr", {"fpr": self.fpr, **self.tpr})


@dataclass(frozen=True)
class AttackRecord(AsRead):
    """The record of an attack on a run.

    Attributes:
        run: the id of the attacked run, `record.run_id`; "" of an old record that does not say it.
        attacked_run: the hash of its settings.
        chosen: how the utterances were chosen, where it was not as usual: `size` and `is_balanced`
            of its origin. Tables take the usual attacks alone.
    """

    attack: str
    run: str
    attacked_run: str
    name: str
    shadow_corpus: Optional[str]
    shadows: Optional[int]
    success: Mapping[str, AttackSuccess]
    roc: Optional[RocCurves] = None
    chosen: Mapping[str, Any] = field(default_factory=dict)
