"""The ε of several trainings on the same records together: one exact composition."""

from __future__ import annotations

from dataclasses import replace
from typing import List, Sequence

from edp_mx.dp.accounting.accountants import count_claimed
from edp_mx.dp.accounting.bound import Bound, unbounded
from edp_mx.dp.accounting.events import Composition, Event
from edp_mx.dp.accounting.guarantee import Guarantee
from edp_mx.dp.accounting.samplers import SAMPLERS
from edp_mx.errors import UserError


def count_together(spent: Sequence[Guarantee], *, delta: float) -> Bound:
    """Return the ε of all releases of several trainings, for a record that is in all of them.

    The noise of each is independent of the others', so that their releases compose as the steps of
    one training do. Its conditions are those of all of them.

    Raises:
        UserError: they protect other units, or are about other neighbours, so that no ε is of both.
    """
    if not spent:
        return unbounded()
    kinds = {(each.plan.record, each.release.neighbours) for each in spent}
    if len(kinds) > 1:
        said = " and ".join(sorted(f"one {record} ({how})" for record, how in kinds))
        raise UserError(
            f"the runs protect {said}, so that there is no ε of all of them together; ask for "
            "those of one kind"
        )
    reasons = tuple(dict.fromkeys(reason for each in spent for reason in each.holds_if.reasons))
    if reasons:
        return unbounded(*reasons)
    ((_, neighbours),) = kinds
    events = [e for each in spent for e in each.plan.composition(each.entries).events]
    bound = count_claimed(Composition(neighbours, _of_one_sampler(events, neighbours)), delta=delta)
    conditions = (text for each in spent for text in each.holds_if.conditions)
    return replace(bound, conditions=tuple(dict.fromkeys(conditions)))


def _of_one_sampler(events: Sequence[Event], neighbours: str) -> List[Event]:
    """A shuffled epoch is a step with a sample rate of 1, if a record is left out or in."""
    if len({event.sampler for event in events}) == 1:
        return list(events)
    if neighbours != "zero_out":
        raise UserError(
            "some of the runs shuffle and others draw their batches at random, and one record "
            "replaces another (privacy.adjacency: replace_one); no accountant here counts them "
            "together, so ask for those of one sampler"
        )
    sampled = next(name for name, sampler in SAMPLERS.items() if sampler.by_chance)
    return [event if event.draws.by_chance else replace(event, sampler=sampled) for event in events]
