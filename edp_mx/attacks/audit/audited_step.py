"""The step that an audit attacks: of a configuration, over as many records as it needs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Dict, Sequence

import numpy as np

from edp_mx.dp.accounting.bound import Bound
from edp_mx.dp.accounting.config import PrivacyConfig
from edp_mx.dp.accounting.counting import count_as_published, count_what_holds
from edp_mx.dp.accounting.plan import Plan
from edp_mx.dp.accounting.release import Release
from edp_mx.dp.accounting.samplers import SAMPLERS, sizes_of
from edp_mx.dp.planning import plan_of
from edp_mx.dp.sampling.dealing import deal
from edp_mx.dp.sampling.draws import Sampler
from edp_mx.errors import UserError

AUDITED_DELTA = 1e-5  # where the settings name none


@dataclass(frozen=True)
class AuditedStep:
    """One step under a plan.

    Attributes:
        plan: of this step alone; its α are given, one per layer of the audited network.
        num_units: the utterances or users that it is drawn from.
        utterances_per_user: of each user, all of which take part.
    """

    plan: Plan
    num_units: int
    utterances_per_user: int

    @classmethod
    def of(
        cls,
        privacy: PrivacyConfig,
        *,
        batch_size: int,
        num_workers: int,
        layer_scales: Sequence[float],
        sample_rate: float,
    ) -> AuditedStep:
        """Return the step of the settings below `privacy:`; δ is 1e-5 unless they set it.

        Args:
            batch_size: B, over all workers.
            sample_rate: q of poisson, approximately: the number of records is rounded.

        Raises:
            UserError: a step without noise, or settings that no run can have.
        """
        if privacy.mechanism == "none" or not privacy.noise_multiplier:
            raise UserError(
                "privacy.noise_multiplier: an audit needs the noise of a mechanism, above 0, not "
                "that of mechanism none or of a target, which is found for a whole run"
            )
        if not 0 < sample_rate <= 1:
            raise UserError(f"--sample-rate is {sample_rate}; it must be above 0, at most 1")
        is_drawn = SAMPLERS[privacy.sampler].by_chance
        places = round(batch_size / sample_rate) if is_drawn else batch_size
        sizes = sizes_of(
            privacy.sampler,
            batch_size=batch_size,
            num_workers=num_workers,
            micro_batches_per_worker=privacy.micro_batches_per_worker,
            num_units=places,
        )
        plan = plan_of(
            replace(privacy, delta=privacy.delta or AUDITED_DELTA, delta_mode="default"),
            replace(sizes, num_units=None, steps_per_epoch=1),  # of one step; δ is not 1/(2n)
            epochs=1,
            num_workers=num_workers,
        )
        release = plan.release and plan.release.with_layer_scales(layer_scales)
        plan = replace(plan, release=release, scales_multiplier=None)  # α is not released here
        return cls(plan, places, privacy.max_utterances_per_user)

    @property
    def release(self) -> Release:
        """The event of the step for the accountant."""
        assert self.plan.release is not None
        return self.plan.release

    @property
    def layer_scales(self) -> Sequence[float]:
        """α of the layers of the audited network."""
        return self.release.layer_scales or ()

    def claims(self) -> Dict[str, Bound]:
        """Return the ε of the step, as published and as it holds."""
        entries = self.plan.entries()
        return {
            "published": count_as_published(self.plan, entries),
            "holds": count_what_holds(self.plan, entries),
        }

    def build_sampler(self, rank: int) -> Sampler:
        """Build the real sampler over as many records as the settings need."""
        release = self.release
        users = np.repeat(np.arange(self.num_units), self.utterances_per_user)
        is_user = release.clips.is_user
        return deal(
            unit=release.unit,
            sampler=release.sampler,
            num_records=len(users) if is_user else self.num_units,
            batch_size=round(release.batch_size),
            rank=rank,
            num_workers=release.num_workers,
            seed=0,
            micro_batches_per_worker=release.micro_batches_per_worker,
            users=users if is_user else None,
            max_utterances_per_user=self.utterances_per_user,
            adjacency=release.adjacency,
        )
