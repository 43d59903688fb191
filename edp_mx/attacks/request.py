"""Which attacks on a run are asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, List, Optional

from edp_mx.errors import UserError
from edp_mx.runtime.settings import refuse_unread

if TYPE_CHECKING:
    from edp_mx.config import Overrides

AUTOMATIC = "auto"  # in place of a shadow: one that is trained on another corpus


@dataclass(frozen=True)
class AttackRequest:
    """Attacks on a run; the options of `edp-mx attack`, which say more, have the same names.

    Attributes:
        shadow: a run directory, configurations or `AUTOMATIC`.
        overrides: what the models that are trained change in the settings of the run.
    """

    path: Path
    shadow: Optional[List[str]] = None
    lira: Optional[int] = None
    jobs: Optional[int] = None
    shadows_of: Optional[Path] = None
    canaries: bool = False
    canary_count: Optional[int] = None
    canary_digits: Optional[int] = None
    candidates: Optional[int] = None
    from_scores: bool = False
    balanced: bool = False
    size: Optional[int] = None
    seed: Optional[int] = None
    runs: Optional[Path] = None
    overrides: Overrides = ()

    def __post_init__(self) -> None:
        """Refuse options that the requested attacks do not read, and impossible values."""
        if self.lira is not None and self.shadows_of is not None:
            raise UserError("--shadows-of uses the shadows of another run: leave out --lira")
        is_new, canaries = not self.from_scores, self.canaries
        lira = is_new and self.lira is not None
        shadow = is_new and self.trains_shadow
        trains = lira or canaries or shadow
        of_canaries = ("canary_count", "canary_digits", "candidates")
        for is_read, names, why in (
            (is_new, ("balanced", "size", "seed"), "--from-scores uses the scored utterances"),
            (trains, ("overrides",), "no model is trained that --set could change"),
            (lira, ("jobs",), "no shadows of --lira are trained"),
            (canaries, of_canaries, "no canaries are drawn"),
            (shadow, ("runs",), "no run is trained for --shadow"),
        ):
            if not is_read:
                refuse_unread(vars(self), names, why)
        if self.jobs is not None and self.jobs < 1:
            raise UserError(f"--jobs is {self.jobs}; it must be 1 or more")

    @property
    def trains_shadow(self) -> bool:
        """Whether the shadow is trained, and no run that there is."""
        if self.shadow is None:
            return False
        return self.shadow == [AUTOMATIC] or not Path(self.shadow[0]).is_dir()
