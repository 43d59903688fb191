"""The tasks that `task` chooses from; a new one is a room of its own and a line here."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Tuple, TypeVar

from edp_mx.errors import UserError
from edp_mx.tasks.causal_lm.task import CAUSAL_LM
from edp_mx.tasks.classification.task import CLASSIFICATION
from edp_mx.tasks.intent_slot.task import INTENT_SLOT
from edp_mx.tasks.masked_lm.task import MASKED_LM
from edp_mx.tasks.task import Task

T = TypeVar("T")

TASKS: Dict[str, Task] = {
    task.name: task for task in (INTENT_SLOT, CLASSIFICATION, MASKED_LM, CAUSAL_LM)
}


def task_of(settings: Mapping[str, Any]) -> Task:
    """Return the task that the settings of a run, or of its record, name."""
    name = settings.get("task", INTENT_SLOT.name)
    if name not in TASKS:
        raise UserError(f"there is no task {name!r}; known: {', '.join(TASKS)}")
    return TASKS[name]


def by_task(
    items: Iterable[T], settings_of: Callable[[T], Mapping[str, Any]]
) -> Iterator[Tuple[Task, List[T]]]:
    """Yield each task that items are of, by their settings, with these items in their order."""
    found: Dict[str, List[T]] = {}
    for item in items:
        found.setdefault(task_of(settings_of(item)).name, []).append(item)
    yield from ((TASKS[name], its) for name, its in found.items())
