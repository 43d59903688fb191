"""What a ledger's head says was planned, and where the lines below it differ from that."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from edp_mx.accounting.ledger import Entry, Ledger
from edp_mx.accounting.plan import Plan

SCALES = "layer scales"
_EPOCH = re.compile(r"epoch (\d+)")
_CLOSE = 1e-9  # relative, between two multipliers that should be equal


def planned_epochs(facts: Mapping[str, Any]) -> Tuple[Entry, ...]:
    """The epochs that the head of a ledger announces; without what α may have cost.

    Raises:
        KeyError, TypeError, UserError: the facts are not those of a run of this version.
    """
    return Plan.from_facts(facts).entries(facts["noise_multiplier"])


def differences(ledger: Ledger) -> Tuple[str, ...]:
    """Where a ledger says something else than its plan, one sentence each; empty where nowhere.

    Example:
        >>> facts = {"release": {"num_workers": 1, "micro_batch_size": 8, "max_grad_norm": 1.0,
        ...     "layer_scales": [1.0], "adjacency": "replace_one", "variant": "calibrated"},
        ...     "noise_multiplier": 2.0, "decay": {}, "epochs": 3, "steps": 12, "num_examples": 32,
        ...     "scales_source": "ones"}
        >>> differences(Ledger(facts, planned_epochs(facts), is_torn=False))
        ()
        >>> differences(Ledger(facts, planned_epochs(facts)[:2], is_torn=False))
        ('epoch 2 is missing: the run has not come so far, or was ended before',)
    """
    planned = {entry.what: entry for entry in planned_epochs(ledger.facts)}
    done: Dict[str, int] = Counter()
    for entry in ledger.entries:
        done[entry.what] += entry.event.count
    found = [
        *_missing(planned, done),
        *_repeated(planned, done),
        *_of_scales(ledger.facts, ledger.entries),
        *_unplanned(planned, ledger.entries),
    ]
    if ledger.is_torn:
        found.append("the last line was cut off by a crash; nothing had been released for it")
    return tuple(found)


def epoch_of(entry: Entry) -> Optional[int]:
    """The epoch that an entry speaks of, if it does."""
    match = _EPOCH.fullmatch(entry.what)
    return int(match.group(1)) if match else None


def ranges(numbers: Sequence[int]) -> str:
    """Ascending numbers in words.

    Example:
        >>> ranges([0, 1, 2, 5])
        '0 to 2, 5'
    """
    parts: List[List[int]] = []
    for number in numbers:
        if parts and parts[-1][-1] == number - 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ", ".join(f"{p[0]} to {p[-1]}" if len(p) > 1 else f"{p[0]}" for p in parts)


def _missing(planned: Dict[str, Entry], done: Mapping[str, int]) -> List[str]:
    """Epochs that are not there, or not all of their steps."""
    absent = [epoch_of(entry) for what, entry in planned.items() if not done[what]]
    found = []
    if absent:
        are = "are" if len(absent) > 1 else "is"
        found.append(
            f"{_epochs([t for t in absent if t is not None])} {are} missing: the run has not come "
            "so far, or was ended before"
        )
    for what, entry in planned.items():
        if 0 < done[what] < entry.event.count:
            found.append(f"{what} holds {done[what]} of its {entry.event.count} planned steps")
    return found


def _repeated(planned: Dict[str, Entry], done: Mapping[str, int]) -> List[str]:
    """Epochs that were released more than once, grouped by how often."""
    times: Dict[int, List[int]] = {}
    found = []
    for what, entry in planned.items():
        epoch, count = epoch_of(entry), entry.event.count
        if epoch is None or done[what] <= count:
            continue
        if entry.event.sampler == "shuffle":
            times.setdefault(done[what], []).append(epoch)
        else:
            found.append(
                f"{what} holds {done[what]} steps, {count} were planned: it was interrupted and "
                "repeated, and all of them count"
            )
    for count, epochs in sorted(times.items()):
        verb, they = ("were", "each") if len(epochs) > 1 else ("was", "it")
        found.append(
            f"{_epochs(epochs)} {verb} begun {count} times: interrupted and repeated, and {they} "
            f"counts {count} times"
        )
    return found


def _of_scales(facts: Mapping[str, Any], entries: Sequence[Entry]) -> List[str]:
    """The one release of α, where the plan has one."""
    wanted = 1 if facts["scales_source"] == "dp_release" else 0
    count = sum(entry.event.count for entry in entries if entry.what == SCALES)
    if count == wanted:
        return []
    return [f"the layer scales were released {count} times, planned was {wanted}; each counts"]


def _unplanned(planned: Dict[str, Entry], entries: Sequence[Entry]) -> List[str]:
    """Entries that no plan has, or that have another multiplier or rate than planned."""
    found = []
    for entry in entries:
        if entry.what == SCALES:
            continue
        if entry.what not in planned:
            found.append(f"{entry.what} is there, but was not planned; it counts")
            continue
        plan = planned[entry.what]
        pairs = {
            "the noise multiplier": (entry.noise_multiplier, plan.noise_multiplier),
            "the effective noise multiplier": (
                entry.event.effective_noise_multiplier,
                plan.event.effective_noise_multiplier,
            ),
            "the sample rate": (entry.event.sample_rate, plan.event.sample_rate),
        }
        for name, (is_, was) in pairs.items():
            if is_ is None or was is None:
                if is_ is not was:
                    found.append(f"{entry.what} has {name} {is_}, planned was {was}")
            elif not math.isclose(is_, was, rel_tol=_CLOSE, abs_tol=0.0):
                found.append(f"{entry.what} has {name} {is_:.6g}, planned was {was:.6g}")
        if entry.event.sampler != plan.event.sampler:
            found.append(f"{entry.what} was drawn by {entry.event.sampler}, not as planned")
    return list(dict.fromkeys(found))


def _epochs(numbers: Sequence[int]) -> str:
    return f"{'epochs' if len(numbers) > 1 else 'epoch'} {ranges(numbers)}"
