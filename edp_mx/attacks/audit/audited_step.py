"""Settings of the step that an audit attacks."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Dict, Tuple

import numpy as np

from edp_mx.dp.accounting.bound import Bound
from edp_mx.dp.accounting.counting import count_as_published, count_what_holds
from edp_mx.dp.accounting.decay import Decay
from edp_mx.dp.accounting.plan import Plan
from edp_mx.dp.accounting.release import Release
from edp_mx.dp.sampling.dealing import deal
from edp_mx.dp.sampling.draws import Sampler
from edp_mx.errors import UserError
from edp_mx.runtime.distributed import Workers


@dataclass(frozen=True)
class AuditedStep:
    """Settings of the step that an audit attacks, in the words of `edp-mx audit step`.

    Attributes:
        micro_batch_size: |M|: utterances of a micro-batch, or units per worker; the expected number
            under poisson.
        utterances_per_user: of each user, all of which take part.
        sampler: shuffle (every record is in every step) or poisson.
        sample_rate: q of poisson, approximately: the number of records is rounded.
    """

    variant: str = "calibrated"
    noise_multiplier: float = 1.0
    max_grad_norm: float = 1.0
    layer_scales: Tuple[float, ...] = (1.0, 0.25)
    adjacency: str = "replace_one"
    micro_batch_size: int = 16
    unit: str = "micro_batch"
    utterances_per_user: int = 4
    micro_batches_per_worker: int = 1
    clipping: str = "loop"
    clip_rule: str = "abadi"
    sampler: str = "shuffle"
    sample_rate: float = 0.5

    def release(self, num_workers: int) -> Release:
        """Return what the accountant is told about the step; a step without noise is refused."""
        if not 0 < self.noise_multiplier < float("inf"):
            raise UserError(
                f"--noise-multiplier is {self.noise_multiplier}; an audit needs noise, so it must "
                "be finite and above 0"
            )
        batch, places = self._sizes(num_workers)
        rate = batch / places if self.sampler == "poisson" else 1.0
        names = {field.name for field in fields(self)} & {field.name for field in fields(Release)}
        shared = {name: getattr(self, name) for name in names - {"sample_rate"}}
        return Release(num_workers=num_workers, sample_rate=rate, **shared)

    def plan(self, num_workers: int, *, delta: float = 1e-5) -> Plan:
        """Return the plan of one step."""
        return Plan(
            self.release(num_workers),
            noise_multiplier=self.noise_multiplier,
            decay=Decay(),
            epochs=1,
            delta=delta,
        )

    def claims(self, *, num_workers: int, delta: float) -> Dict[str, Bound]:
        """Return the ε of one step, as published and as it holds."""
        plan = self.plan(num_workers, delta=delta)
        entries = plan.entries()
        return {
            "published": count_as_published(plan, entries),
            "holds": count_what_holds(plan, entries),
        }

    def build_sampler(self, workers: Workers) -> Sampler:
        """Build the real sampler over as many records as the settings need."""
        batch, places = self._sizes(workers.size)
        users = np.repeat(np.arange(places), self.utterances_per_user)
        is_user = self.unit == "user"
        return deal(
            unit=self.unit,
            sampler=self.sampler,
            num_records=len(users) if is_user else places,
            batch_size=batch,
            rank=workers.rank,
            num_workers=workers.size,
            seed=0,
            micro_batches_per_worker=self.micro_batches_per_worker,
            users=users if is_user else None,
            max_utterances_per_user=self.utterances_per_user,
            adjacency=self.adjacency,
        )

    def _sizes(self, num_workers: int) -> Tuple[int, int]:
        """Return B and the number of units that it is drawn from."""
        if not 0 < self.sample_rate <= 1:
            raise UserError(f"--sample-rate is {self.sample_rate}; it must be above 0, at most 1")
        batch = num_workers * self.micro_batches_per_worker * self.micro_batch_size
        return batch, round(batch / self.sample_rate) if self.sampler == "poisson" else batch
