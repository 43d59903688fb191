"""ε as a paper prints it, whatever holds: by the mechanism and the sampler."""

from __future__ import annotations

from typing import Sequence, Tuple

from edp_mx.accounting.bound import NO_NOISE, Bound, count_released_as_published
from edp_mx.accounting.ledger import Entry
from edp_mx.accounting.lognumber import LogNumber, log_of
from edp_mx.accounting.release import Release
from edp_mx.accounting.zcdp import yu_rs_of_steps

NOTHING_SAID = "Yu et al. (2019) say nothing where the sample rate times the noise is 1 or more"


def count_published(release: Release, entries: Sequence[Entry], *, delta: float) -> Bound:
    """ε of what a ledger holds, or a plan, as it is published. NOT a bound.

    Algorithm 1, and DP-SGD on shuffled batches: each epoch once, with its own z_t (RF of Yu et
    al.). DP-SGD on batches that are sampled: `paper_rs`, the count of Yu et al. for these, which
    the paper takes its accounting from; it prints no ε of DP-SGD itself.

    Source: eDP-SGD, section 4; Yu et al. (2019), Theorems 4 and 5.
    """
    if release.clips == "micro_batch" or release.sampler == "shuffle":
        return count_released_as_published(entries, delta=delta)
    steps = [
        (entry.event.sample_rate, entry.noise_multiplier, entry.event.count)
        for entry in entries
        if entry.noise_multiplier is not None and entry.event.count
    ]
    epsilon = yu_rs_of_steps(steps, delta=delta)["epsilon"] if steps else 0.0
    reasons: Tuple[str, ...] = ()
    if epsilon == float("inf"):
        reasons = (NO_NOISE,) if min(z for _, z, _ in steps) == 0 else (NOTHING_SAID,)
    return Bound(
        accountant="paper_rs",
        conversion="heuristic of its authors",
        rho=None,
        epsilon=LogNumber(log_of(epsilon)),
        reasons=reasons,
    )
