"""Evidence beside a ledger, from the other files of a run, that nothing was cut off."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import asdict
from typing import Dict, NamedTuple, Optional, Tuple

from edp_mx.dp.accounting.ledger import Ledger, LedgerMark, refuse_other
from edp_mx.dp.checkpoint_file import checkpoints, read_ledger_mark
from edp_mx.errors import UserError
from edp_mx.runs.file_types import LedgerEnd, Privacy, Record
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runtime.console_text import count_of

END = "ledger_end"  # in privacy.json and record.json: the number of lines, and the last one's hash
_LATER = ("environment", "layers", "split", "vocabulary", "privacy", "record", "results")


class Evidence(NamedTuple):
    """The evidence in the files beside a ledger, read before the ledger, which a run lengthens.

    Attributes:
        ends: with which line it ended, by the name of the file that says so.
        mark: how far it had come at the newest checkpoint.
        trained: the epochs that were trained, from 1, each with the name of a file that says so.
        has_ended: whether the run trained to its end.
        later: the files that are written only after the ledger has α.
    """

    run: RunDirectory
    ends: Dict[str, LedgerEnd]
    mark: Optional[LedgerMark]
    trained: Dict[int, str]
    has_ended: bool
    later: Tuple[str, ...]

    @classmethod
    def of(cls, run: RunDirectory) -> Evidence:
        """Read it from the folder of a run."""
        privacy = run.load(Privacy) if run.has("privacy") else None
        record = run.load(Record) if run.has("record") else None
        stated = (("privacy.json", privacy), ("record.json", record))
        ends = {name: each.ledger_end for name, each in stated if each and each.ledger_end}
        count = record.epochs if record else 0
        trained = dict.fromkeys(range(1, count + 1), "record.json")
        rows = [row["epoch"] for row in run.epochs()]
        trained.update(dict.fromkeys(rows, run.metrics.name))
        later = [f"{name}.json" for name in _LATER if run.has(name)]
        later += [run.metrics.name] * bool(rows)
        return cls(run, ends, _mark(run), trained, run.has("results"), tuple(later))

    def refuse_absent(self) -> None:
        """Refuse a run that has begun and whose ledger is gone, or was emptied."""
        ledger = self.run.ledger
        if self.later and not (ledger.exists() and ledger.stat().st_size):
            what = "empty" if ledger.exists() else "missing"
            raise UserError(
                f"{ledger} is {what}, though {self.later[0]} is there, and without it nobody knows "
                "what the run has spent; restore the ledger, or train into a new directory"
            )

    def refuse_cut(self, ledger: Ledger) -> None:
        """Refuse a ledger that lacks lines which it had when these files were written."""
        if self.mark is not None and self.mark.size:
            refuse_other(self.run.ledger, self.mark)
        for name, end in self.ends.items():
            if not ledger.chain.has(asdict(end)):
                self._refuse(
                    f"has {count_of(ledger.chain.end['lines'], 'line')}",
                    f"{name} says that it ended with line {end.lines} and the hash "
                    f"{end.sha256[:8]}…",
                )
        if self.later and not ledger.entries and ledger.plan.released.layer_scales is None:
            self._refuse("has only its first line", f"{self.later[0]} is there")
        self._refuse_missing_epochs(ledger)

    def confirms(self, ledger: Ledger) -> bool:
        """Return whether `refuse_cut` had anything to compare the length of the ledger with."""
        return bool(self.ends or self.trained) or self._is_whole(ledger)

    def _is_whole(self, ledger: Ledger) -> bool:
        """Whether all that was planned was released."""
        return self.has_ended and not ledger.plan.stops_early and ledger.plan.max_epsilon is None

    def _refuse_missing_epochs(self, ledger: Ledger) -> None:
        """Refuse a ledger that lacks an epoch, or steps of one; a budget cuts off the last."""
        trained, whole = dict(self.trained), ledger.plan.entry(0).event.count
        if self._is_whole(ledger):
            trained.update(dict.fromkeys(range(1, ledger.plan.epochs + 1), "results.json"))
        held: Dict[Optional[int], int] = Counter()
        for entry in ledger.entries:
            held[entry.epoch] += entry.event.count
        for epoch, name in sorted(trained.items()):
            is_cut = ledger.plan.max_epsilon is not None and epoch == max(trained)
            if held[epoch - 1] >= (1 if is_cut else whole):
                continue
            has = f"has {held[epoch - 1]} of the {whole} steps of" if held[epoch - 1] else "lacks"
            self._refuse(f"{has} epoch {epoch}", f"{name} says that it was trained")

    def _refuse(self, what: str, but: str) -> None:
        raise UserError(
            f"{self.run.ledger} {what}, but {but}: lines are missing at its end, and no ε can be "
            "read from it; restore the ledger, or leave the run out"
        )


def _mark(run: RunDirectory) -> Optional[LedgerMark]:
    """The mark of the newest checkpoint that has one which can be read."""
    for path in checkpoints(run.checkpoint):
        with suppress(UserError):
            return read_ledger_mark(path)
    return None
