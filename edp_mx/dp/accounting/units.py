"""Units of clipping, and whom each protects: one object for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Optional
from unicodedata import normalize

from edp_mx.dp.accounting.coverage import SEVERAL_UTTERANCES, USER_NAMES
from edp_mx.errors import UserError
from edp_mx.runtime.settings import SettingError


def name_of(user: Any) -> Any:
    """Return the name that tells a user from others.

    Blanks around it and the form in which Unicode writes its accents do not, upper and lower case
    do.
    """
    return normalize("NFC", user).strip() if isinstance(user, str) else user


@dataclass(frozen=True)
class Unit:
    """A unit of clipping; one object each, in `UNITS`.

    Attributes:
        mechanism: the one that clips it; the first unit of a mechanism is its default.
        record: whom the guarantee protects, utterance or user.
        is_mean: the mean gradient of a micro-batch is clipped, not each record's own.
        whole: what it says of a person, in words.
        several: how a person may be there several times.
        not_covered: leaks about a person that no ε here covers.
    """

    name: str
    mechanism: str
    record: str = "utterance"
    is_mean: bool = False
    whole: str = (
        "It does not protect a person as a whole: someone with several utterances in the data is "
        "protected less."
    )
    several: str = "utterances"
    not_covered: str = SEVERAL_UTTERANCES

    @property
    def is_user(self) -> bool:
        """Whether it is made of all records under one name, which the corpus must give."""
        return self.record != "utterance"

    @property
    def has_one_record(self) -> bool:
        """Whether a unit is always one record."""
        return not self.is_mean and not self.is_user

    @property
    def clipped(self) -> str:
        """Return the beginning of a list of releases, in words."""
        return "" if self.is_mean else f"each {self.name} clipped, "

    def kappa(self, adjacency: str, *, is_single: bool) -> float:
        """Return κ: by how many C one record can move one worker's clipped sum.

        Args:
            is_single: a micro-batch has exactly one record.
        """
        is_alone = is_single or not self.is_mean
        return 1.0 if is_alone and adjacency == "zero_out" else 2.0

    def neighbours(self, adjacency: str, *, is_single: bool) -> str:
        """Return the effect of one record on a step, in the terms of `events.Composition`."""
        is_in_mean = self.is_mean and not is_single and adjacency == "replace_one"
        return "replace_in_mean" if is_in_mean else adjacency

    def per_worker(self, micro_batches: int, size: float) -> float:
        """Return the public number by which a worker divides its sum of clipped units."""
        return micro_batches if self.is_mean else size

    def check_variant(self, variant: str, micro_batches_per_worker: int) -> None:
        """Refuse the noise, and several micro-batches, of Algorithm 1 for another unit."""
        if not self.is_mean and variant == "published":
            raise UserError(
                "variant is published, which is the noise of Algorithm 1 (eDP-SGD) and none for "
                "DP-SGD; use variant: calibrated with mechanism: dp_sgd"
            )
        if not self.is_mean and micro_batches_per_worker != 1:
            raise SettingError(
                "micro_batches_per_worker",
                f"must be 1, because each {self.name} is clipped by itself, not "
                f"{micro_batches_per_worker}",
            )


UNITS: Dict[str, Unit] = {
    unit.name: unit
    for unit in (
        Unit("micro_batch", "edp_sgd", is_mean=True),
        Unit("utterance", "dp_sgd"),
        Unit(
            "user",
            "dp_sgd",
            record="user",
            whole="All utterances under one user name are protected together; someone who speaks "
            "under several names is protected less.",
            several="user names",
            not_covered=USER_NAMES,
        ),
    )
}
MECHANISMS = tuple(dict.fromkeys(unit.mechanism for unit in UNITS.values()))


def unit_of(mechanism: str, unit: Optional[str]) -> str:
    """Return the unit that a mechanism clips: the given one, or its default."""
    units = [each.name for each in UNITS.values() if each.mechanism == mechanism]
    units = units or list(UNITS)[:1]  # without a mechanism
    if unit is not None and unit not in units:
        raise UserError(
            f"unit is {unit}, but mechanism {mechanism} clips each {' or '.join(units)}: edp_sgd "
            "goes with micro_batch, dp_sgd with utterance or user"
        )
    return unit or units[0]
