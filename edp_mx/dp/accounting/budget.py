"""Privacy budgets: the steps left to a run, and the releases a stopped run might have made."""

from __future__ import annotations

from itertools import takewhile
from typing import Callable, Iterator, Optional, Sequence, Tuple

from edp_mx.dp.accounting.counting import count_what_holds
from edp_mx.dp.accounting.coverage import PRIVATE_INPUTS, UNKNOWN_SCALES
from edp_mx.dp.accounting.entries import Entry
from edp_mx.dp.accounting.plan import Plan
from edp_mx.errors import UserError


def refuse_blind_budget(plan: Plan, key: str) -> None:
    """Refuse a target or a budget, by its key, where ε is infinite whatever the noise."""
    if plan.awaits_scales:
        raise UserError(
            f"{key}: {UNKNOWN_SCALES}; use privacy.layer_scales_unit: largest or "
            "privacy.variant: calibrated, where the noise is in proportion to them"
        )
    if plan.seed_is_fixed:
        raise UserError(
            f"{key}: with privacy.insecure_fixed_seed epsilon is infinite; leave one of them out"
        )
    for name in plan.private_inputs:
        if name not in plan.assumed_public:
            why = PRIVATE_INPUTS[name]
            raise UserError(
                f"{key}: epsilon is infinite whatever the noise, because {why.reason}. Either "
                f"{why.remedy}; or, if it is public in truth, say so with "
                f"privacy.assume_public: [{name}], which every report repeats"
            )


def refuse_unaffordable(plan: Plan, spent: Sequence[Entry] = ()) -> None:
    """Refuse to release α if `max_epsilon` has no room for it and for a first step.

    A run that was interrupted before it wrote α down releases it again; then both releases count.

    Args:
        spent: the ledger of a run that has not begun its first epoch.
    """
    if plan.max_epsilon is None:
        return
    refuse_blind_budget(plan, "privacy.max_epsilon")
    scales = (*spent, *plan.scales_entries())
    bound = count_what_holds(plan, scales)
    if not bound.is_within(plan.max_epsilon):
        raise UserError(
            f"privacy.max_epsilon: {plan.max_epsilon:g} is less than the {bound.epsilon} that the "
            "layer scales cost (privacy.scale_release); nothing was released"
        )
    if not permitted_steps(plan, scales, 0):
        epoch = count_what_holds(plan, (*scales, plan.entry(0)))
        raise UserError(
            f"privacy.max_epsilon: {plan.max_epsilon:g} leaves no room for a step: the first epoch "
            f"costs {epoch.epsilon}; raise it, or let privacy.target_epsilon find the noise with "
            "which all epochs fit; nothing was released"
        )


def permitted_steps(plan: Plan, spent: Sequence[Entry], epoch: int, *, first: int = 0) -> int:
    """Return how many steps of an epoch still fit into `max_epsilon`.

    Args:
        first: the step, from 0, with which the epoch goes on; those before it are not counted.

    Edge cases: a shuffled epoch costs the same however many of its steps are taken: all or none.
    """
    most = plan.steps_per_epoch - first
    if _fits(plan, (*spent, plan.entry(epoch, most))):
        return most
    if not plan.released.draws.by_chance:
        return 0
    return _largest(most, lambda steps: _fits(plan, (*spent, plan.entry(epoch, steps))))


def committed_entries(
    plan: Plan, spent: Sequence[Entry], *, first_epoch: Optional[int] = None, first_step: int = 0
) -> Tuple[Entry, ...]:
    """Return the entries of a ledger and all further ones that the run might have made.

    When a run stops because of its data, stopping itself reveals something. The ε that holds
    for it is the ε of the longest run that it might have been: its ledger, and the rest of its plan
    as far as `max_epsilon` allows.

    Args:
        first_epoch: with which a resumed run goes on, from 0; what was spent on it and on later
            ones counts besides. Left out, the run goes on after its ledger's last entry.
        first_step: of that epoch, from 0.
    """
    if first_epoch is None:
        first_epoch, first_step = _place_after(plan, spent)
    scales = plan.scales_entries()
    is_there = {entry.what for entry in scales} <= {entry.what for entry in spent}
    # Whoever was killed between its line in the ledger and α itself releases α again.
    is_known = is_there and plan.released.layer_scales is not None
    entries = tuple(spent) if is_known else (*spent, *scales)
    planned = tuple(_from(plan, first_epoch, first_step))
    if not planned or _fits(plan, (*entries, *planned)):
        return (*entries, *planned)
    whole = _largest(len(planned), lambda count: _fits(plan, (*entries, *planned[:count])))
    entries, cut = (*entries, *planned[:whole]), planned[whole]
    assert cut.epoch is not None
    first = first_step if cut.epoch == first_epoch else 0
    steps = permitted_steps(plan, entries, cut.epoch, first=first)
    return (*entries, plan.entry(cut.epoch, steps)) if steps else entries


def _place_after(plan: Plan, spent: Sequence[Entry]) -> Tuple[int, int]:
    """The epoch and the step, both from 0, with which a run is resumed.

    A run that was resumed from an older checkpoint may repeat each epoch after its last entry,
    however often it was done before. Where entries do not say with which step they begin, those of
    that epoch count as one after the other.
    """
    of_epochs = [entry for entry in spent if entry.epoch is not None]
    if not of_epochs:
        return 0, 0
    latest = of_epochs[-1]
    last, whole = latest.epoch, plan.entry(0).event.count
    assert last is not None
    if latest.first_step is None:
        its = takewhile(lambda entry: entry.epoch == last, reversed(of_epochs))
        done = sum(entry.event.count for entry in its)
    else:
        done = latest.first_step + latest.event.count
    return (last, done) if done < whole else (last + 1, 0)


def _from(plan: Plan, epoch: int, step: int) -> Iterator[Entry]:
    """The epochs from one on, which is begun with this step."""
    for number in range(epoch, plan.epochs):
        yield plan.entry(number, plan.steps_per_epoch - step * (number == epoch))


def _fits(plan: Plan, entries: Sequence[Entry]) -> bool:
    """Whether entries stay within the budget, if there is one."""
    return plan.max_epsilon is None or count_what_holds(plan, entries).is_within(plan.max_epsilon)


def _largest(end: int, fits: Callable[[int], bool]) -> int:
    """The largest number below `end` that fits, where `end` does not; 0 if none does."""
    low, high = 0, end  # not fits(high)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
