"""An interrupted run: its remains, the command that resumes it, and the ε of doing so."""

from __future__ import annotations

import re
import shutil
from typing import Iterator, Optional

from edp_mx.config import dump_config, read_dumped
from edp_mx.dp.accounting.ledger import Ledger, read_ledger
from edp_mx.dp.checkpoint_file import place_of
from edp_mx.errors import UserError
from edp_mx.runs.recount import guarantee_ahead
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.console_text import count_of

_LOG = re.compile(r"rank_\d+\.log")


def after_interruption(run: RunDirectory, resume: str, *, is_new: bool) -> Iterator[str]:
    """Yield lines for the console; remove the folder of a new run that has not begun.

    Args:
        resume: the command that resumes it; "" where none does.
    """
    if is_new and not has_begun(run):
        remove(run)
        yield f"nothing was trained and nothing released; {run.path} was removed"
    elif resume and run.config.exists() and not run.has("results"):
        yield f"resume it with: {resume}"
        yield resumes_with(run)


def has_begun(run: RunDirectory) -> bool:
    """Return whether anything was trained, or anything private released."""
    if run.has("environment") or run.checkpoint.exists():
        return True
    try:
        return run.ledger.exists() and bool(read_ledger(run.ledger).entries)
    except UserError:  # no whole line: nothing was released
        return False


def make_way(run: RunDirectory) -> None:
    """Remove the leftovers of a failed start in the folder of a run; nothing else is touched.

    They are those of a start if the configuration is as that writes it, with every setting.
    """
    if not run.config.is_file() or run.has("results") or has_begun(run):
        return
    written = run.config.read_text("utf-8", errors="replace")
    try:
        if dump_config(read_dumped(written)) != written:
            return
    except UserError:
        return
    ours = {"README.md", run.config.name, run.ledger.name, run.workers.name}
    with run.locked():  # which removes torn files first
        left = {path.name for path in run.path.iterdir()}
        if all(name in ours or _LOG.fullmatch(name) for name in left):
            remove(run)


def remove(run: RunDirectory) -> None:
    """Remove a run that has not begun, as far as other workers let it."""
    shutil.rmtree(run.path, ignore_errors=True)


def refuse_other_workers(run: RunDirectory, num_workers: int) -> None:
    """Refuse to go on with other workers than those that the ledger was begun with."""
    begun = run.num_workers()
    if run.ledger.exists() and run.has("environment") and begun != num_workers:
        raise UserError(
            f"{run.path} was begun with {count_of(begun, 'worker')}, and its ledger counts their "
            f"draws: go on with `{run.resume_command()}`, not with {num_workers}"
        )


def resumes_with(run: RunDirectory) -> str:
    """Return a sentence on the steps that a resumed training repeats, and on its total ε."""
    (first, step), epochs = place_of(run.checkpoint), run.num_epochs()
    text = f"it goes on after epoch {first} of {epochs}" if first else "it begins anew"
    if step:
        text = f"it goes on after step {step} of epoch {first + 1} of {epochs}"
    if not run.ledger.exists():
        return text
    ledger = read_ledger(run.ledger)
    repeated, privacy = _repeated(ledger, first, step), run.written().privacy
    if repeated:
        steps, count = count_of(repeated, "step"), "counts" if repeated == 1 else "count"
        text += f" and repeats {steps} of epoch {first + 1}, which {count} twice in ε"
    return text + _epsilon(ledger, first, step, privacy.target_epsilon if privacy else None)


def _repeated(ledger: Ledger, first: int, step: int) -> int:
    """The number of steps that were written down after the checkpoint, at most."""
    begun = [entry.event for entry in ledger.entries if entry.epoch == first]
    left = ledger.plan.steps_per_epoch - step
    if not begun or not begun[0].draws.by_chance:
        return left if begun else 0
    return min(sum(event.count for event in begun) - step, left)


def _epsilon(ledger: Ledger, first: int, step: int, target: Optional[float]) -> str:
    """The ε of all that the ledger has and the run will still release, and the target."""
    ahead = guarantee_ahead(
        ledger.plan, ledger.entries, first_epoch=first, first_step=step
    ).holds_if
    if ahead.epsilon.is_infinite:
        return ""
    beside = "" if target is None else f" (target {target:g})"
    return f"; in the end ε will be {ahead.epsilon.short()}{beside}"
