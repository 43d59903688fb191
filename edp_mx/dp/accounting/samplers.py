"""How a step's records are drawn: all that follows from it, but for the draws and the accountants.

To add a sampler: an object in `SAMPLERS`, its draws in `dp.sampling` with a line in
`dealing`, and the accountants that count it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, Optional, Tuple

from edp_mx.dp.accounting.choices import check_count, check_rate
from edp_mx.errors import UserError
from edp_mx.runtime.console_text import count_of


@dataclass(frozen=True)
class Sizes:
    """The public sizes of a training.

    Attributes:
        num_units: n, the records (or users) of the training part; None where only δ is known.
        micro_batch_size: |M|, the expected number where it is not fixed.
        micro_batches_per_worker: k.
        sample_rate: q; 1 where nothing is drawn by chance.
    """

    num_units: Optional[int]
    micro_batch_size: float
    micro_batches_per_worker: int
    sample_rate: float
    steps_per_epoch: int


@dataclass(frozen=True)
class Sampling:
    """The properties of a sampler; one object each, in `SAMPLERS`.

    Attributes:
        by_chance: chance decides secretly who is in a step, and each step is an event of its own;
            otherwise each record is in one step of an epoch, which is one event.
        has_fixed_size: a micro-batch has |M| records, not about as many.
        how_it_holds: against whom its ε holds, in words.
        known: the part of the draws that an observer may know.
        of_edp_sgd, of_dp_sgd: why the paper's ε is another, in words.
        published: the accountant of DP-SGD on such draws in the paper's source, if there is one.
    """

    name: str
    by_chance: bool
    has_fixed_size: bool
    how_it_holds: str
    known: str
    of_edp_sgd: str
    of_dp_sgd: str
    published: str = ""

    def check_rate(self, sample_rate: float) -> None:
        """Refuse a q that is no probability or, where nothing is drawn by chance, not 1."""
        check_rate(sample_rate)
        if not self.by_chance and sample_rate != 1:
            raise UserError(
                f"sample_rate is {sample_rate} but the sampler is {self.name}, which sampling "
                "does not amplify; leave it out, or draw by Poisson"
            )

    def count(self, steps: int) -> int:
        """Return how often the event of some steps of an epoch counts."""
        return steps if self.by_chance else int(steps > 0)

    def divided(
        self, batch_size: int, lanes: int, num_units: Optional[int], sample_rate: Optional[float]
    ) -> Tuple[float, float, int]:
        """Return |M|, q (B / n by chance) and the steps of an epoch (about 1 / q by chance)."""
        size = batch_size // lanes if self.has_fixed_size else batch_size / lanes
        if not self.by_chance:  # an epoch costs the same however many steps it has
            return size, 1.0, 1 if num_units is None else int(num_units // lanes // size)
        if num_units is not None:
            return size, batch_size / num_units, max(1, round(num_units / batch_size))
        if not sample_rate:
            raise UserError(
                f"{self.name} sampling needs the number of examples, or a sample rate above 0"
            )
        check_rate(sample_rate)
        return size, sample_rate, max(1, round(1 / sample_rate))


SAMPLERS: Dict[str, Sampling] = {
    each.name: each
    for each in (
        Sampling(
            "shuffle",
            by_chance=False,
            has_fixed_size=True,
            how_it_holds="holds: against observers of every aggregate; exact for shuffled epochs "
            "of disjoint batches",
            known=" and even the order of the shuffle",
            of_edp_sgd=" The conversion used for what holds is exact; the paper uses an upper "
            "bound of it.",
            of_dp_sgd="The paper prints no epsilon of DP-SGD; by the way in which it counts its "
            "own algorithm it would be {epsilon}: each epoch once, by rho + 2 sqrt(rho ln "
            "1/delta). The conversion used for what holds is exact; that one is an upper bound "
            "of it.",
        ),
        Sampling(
            "poisson",
            by_chance=True,
            has_fixed_size=False,
            how_it_holds="holds: against observers of every aggregate who do not see who is drawn",
            known=", but not which {record}s were drawn for which step",
            of_edp_sgd=" The paper does not treat steps with randomly drawn utterances; what holds "
            "is composed step by step, with the probability of not being drawn.",
            of_dp_sgd="The count that the paper's accounting is taken from would say {epsilon} for "
            "steps with randomly drawn {record}s; its authors call it approximate, and it is not "
            "a bound. What holds is composed step by step.",
            published="paper_rs",
        ),
    )
}


def sizes_of(
    sampler: str,
    *,
    batch_size: int,
    num_workers: int,
    micro_batches_per_worker: int = 1,
    num_units: Optional[int] = None,
    sample_rate: Optional[float] = None,
    steps_per_epoch: Optional[int] = None,
    units: str = "utterances",
) -> Sizes:
    """Return the sizes of a training with a batch of B units over all workers.

    Args:
        num_units: n.
        sample_rate: q, where n is not known.
        steps_per_epoch: about 1 / q if left out; only what is drawn by chance can have another.
        units: the records that n counts, in words.

    Raises:
        UserError: a batch that the workers cannot share, or that the training part cannot fill, or
            steps that the sampler cannot have.
    """
    if steps_per_epoch is not None and not SAMPLERS[sampler].by_chance:
        raise UserError(
            f"training.steps_per_epoch: {steps_per_epoch} steps are no epoch of privacy.sampler: "
            f"{sampler}, which visits each record once; leave it out, or draw by poisson"
        )
    if steps_per_epoch is not None:
        check_count(steps_per_epoch, "steps_per_epoch", least=1)
    lanes = num_workers * micro_batches_per_worker
    shared = count_of(num_workers, "worker")
    if micro_batches_per_worker > 1:
        shared += f" with privacy.micro_batches_per_worker: {micro_batches_per_worker}"
    if SAMPLERS[sampler].has_fixed_size and batch_size % lanes:
        raise UserError(
            f"training.batch_size: {batch_size} is not a multiple of {lanes} ({shared})"
        )
    if num_units is not None and not 1 <= batch_size <= num_units:
        raise UserError(
            f"training.batch_size: {batch_size} does not lie between 1 and the {num_units} {units}"
        )
    if num_units is not None and num_units < lanes:
        raise UserError(f"{num_units} {units} are too few for {shared}")
    size, rate, steps = SAMPLERS[sampler].divided(batch_size, lanes, num_units, sample_rate)
    steps = steps if steps_per_epoch is None else steps_per_epoch
    return Sizes(num_units, size, micro_batches_per_worker, rate, steps)
