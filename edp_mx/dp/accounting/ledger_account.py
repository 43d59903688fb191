"""The guarantee that a ledger adds up to, and its differences from the plan in its head."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

from edp_mx.dp.accounting.budget import committed_entries
from edp_mx.dp.accounting.entries import SCALES, Entry
from edp_mx.dp.accounting.guarantee import Guarantee, guarantee
from edp_mx.dp.accounting.ledger import Ledger, read_ledger
from edp_mx.dp.accounting.plan import Plan
from edp_mx.runtime.files import PathLike

_CLOSE = 1e-9  # relative, between two multipliers that should be equal


@dataclass(frozen=True)
class LedgerAccount:
    """The total of a ledger, and its differences from the plan in its head, a sentence each.

    `planned` is the guarantee of that plan: the same object as `spent` where nothing differs.
    """

    ledger: Ledger
    spent: Guarantee
    planned: Guarantee
    differences: Tuple[str, ...]

    @property
    def plan(self) -> Plan:
        """The plan of the run, at the δ that was asked for."""
        return self.spent.plan


def account_for(path: PathLike, *, delta: Optional[float] = None) -> LedgerAccount:
    """Read a ledger and compute its guarantee, at the run's own δ or at another."""
    ledger = read_ledger(path)
    spent = guarantee(ledger.plan, ledger.entries, delta=delta, is_stopped=ledger.is_stopped)
    found = differences(ledger)
    planned = spent
    if found:  # all that was planned, as far as the budget goes
        planned = guarantee(ledger.plan, committed_entries(ledger.plan, ()), delta=delta)
    return LedgerAccount(ledger, spent, planned, found)


def differences(ledger: Ledger) -> Tuple[str, ...]:
    """Return the differences between a ledger and its plan, one sentence each."""
    planned = {entry.what: entry for entry in ledger.plan.entries() if entry.epoch is not None}
    done: Dict[str, int] = Counter()
    for entry in ledger.entries:
        done[entry.what] += entry.event.count
    found = _missing(planned, done) + _repeated(planned, done) + _of_scales(ledger)
    found += _unplanned(planned, ledger.entries)
    if ledger.is_stopped:
        found.append(
            "the program ended the run because it diverged; since that tells something of the "
            "data, all that it might still have released counts"
        )
    if ledger.is_torn:
        found.append("the last line was cut off by a crash; nothing had been released for it")
    return tuple(found)


def ranges(numbers: Sequence[int]) -> str:
    """Return ascending epochs in words, counted from 1, such as "1 to 3, 6"."""
    parts: List[List[int]] = []
    for number in numbers:
        if parts and parts[-1][-1] == number - 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ", ".join(
        f"{part[0] + 1} to {part[-1] + 1}" if len(part) > 1 else f"{part[0] + 1}" for part in parts
    )


def _missing(planned: Dict[str, Entry], done: Mapping[str, int]) -> List[str]:
    """Epochs that are missing, wholly or in part."""
    absent = [e.epoch for what, e in planned.items() if e.epoch is not None and not done[what]]
    found = []
    if absent:
        are = "are" if len(absent) > 1 else "is"
        why = "the run has not reached that far, or was ended before"
        found.append(f"{_epochs(absent)} {are} missing: {why}")
    for what, entry in planned.items():
        if 0 < done[what] < entry.event.count:
            found.append(
                f"{entry.title} holds {done[what]} of its {entry.event.count} planned steps"
            )
    return found


def _repeated(planned: Dict[str, Entry], done: Mapping[str, int]) -> List[str]:
    """Epochs that were released more than once, grouped by how often."""
    times: Dict[int, List[int]] = {}
    found = []
    for what, entry in planned.items():
        epoch, count = entry.epoch, entry.event.count
        if epoch is None or done[what] <= count:
            continue
        if not entry.event.draws.by_chance:
            times.setdefault(done[what], []).append(epoch)
        else:
            found.append(
                f"{entry.title} holds {done[what]} steps, {count} were planned: it was interrupted "
                "and repeated, and all of them count"
            )
    for count, epochs in sorted(times.items()):
        verb, they = ("were", "each") if len(epochs) > 1 else ("was", "it")
        found.append(
            f"{_epochs(epochs)} {verb} begun {count} times: interrupted and repeated, and {they} "
            f"counts {count} times"
        )
    return found


def _of_scales(ledger: Ledger) -> List[str]:
    """Differences in the release of α."""
    wanted = 1 if ledger.plan.scales_source == "dp_release" else 0
    lines = [entry for entry in ledger.entries if entry.what == SCALES]
    count = sum(entry.event.count for entry in lines)
    often = f"the layer scales were released {count} times, planned was {wanted}; each counts"
    found = [often] if count != wanted else []
    for planned in ledger.plan.scales_entries():
        found += [text for line in lines for text in _other_noise(line, planned)]
    return found


def _unplanned(planned: Dict[str, Entry], entries: Sequence[Entry]) -> List[str]:
    """Entries that were not planned, or have another multiplier or rate than planned."""
    found = []
    for entry in entries:
        if entry.what in planned:
            found += _other_noise(entry, planned[entry.what])
        elif entry.what != SCALES:
            found.append(f"{entry.title} is there, but was not planned; it counts")
    return list(dict.fromkeys(found))


def _other_noise(entry: Entry, planned: Entry) -> List[str]:
    """Differences between the noise of an entry and the plan's."""
    name_of = "the release of the layer scales" if entry.what == SCALES else entry.title
    there, wanted = entry.to_dict(), planned.to_dict()
    found = []
    for key in ("noise_multiplier", "effective_noise_multiplier", "sample_rate"):
        is_, was, name = there[key], wanted[key], f"the {key.replace('_', ' ')}"
        if is_ is None or was is None:
            if is_ is not was:
                found.append(f"{name_of} has {name} {is_}, planned was {was}")
        elif not math.isclose(is_, was, rel_tol=_CLOSE, abs_tol=0.0):
            found.append(f"{name_of} has {name} {is_:.6g}, planned was {was:.6g}")
    return found


def _epochs(numbers: Sequence[int]) -> str:
    return f"{'epochs' if len(numbers) > 1 else 'epoch'} {ranges(numbers)}"
