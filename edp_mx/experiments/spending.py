"""What a run may spend and what it has spent: its plan, its ledger, its budget."""

from __future__ import annotations

import logging
from typing import Any, Dict, Optional

from edp_mx.accounting.ledger import Entry, LedgerFile, read_ledger
from edp_mx.accounting.report import Guarantee
from edp_mx.config import ExperimentConfig
from edp_mx.data.poisson_sampling import AnyShard
from edp_mx.distributed import Workers
from edp_mx.experiments.first_worker import on_first_worker
from edp_mx.experiments.plan import entry_of, guarantee_of, planned_entries, scales_entries
from edp_mx.experiments.run_directory import RunDirectory

logger = logging.getLogger(__name__)


class Spending:
    """Writes each release down before it is made, and makes none that the budget forbids.

    Args:
        config: with z₀ set.
        workers, run, shard: of the run.
        facts: what all its releases have in common, see `plan.facts_of`.

    Attributes:
        plan: the guarantee of the whole run as it is planned.

    Raises:
        UserError: the settings have no accountant, or the ledger is that of another run.

    Guarantee: the ledger lies on disk before what it speaks of is released. An interrupted epoch is
    repeated and counted twice: the ledger can only say too much.
    """

    def __init__(
        self,
        config: ExperimentConfig,
        workers: Workers,
        run: RunDirectory,
        shard: AnyShard,
        facts: Dict[str, Any],
    ) -> None:
        self._config, self._workers, self._run, self._shard = config, workers, run, shard
        self._facts = facts
        self._is_private = config.privacy.mechanism != "none"
        self._ledger: Optional[LedgerFile] = None
        self.plan = guarantee_of(facts, planned_entries(config, shard, workers.size))
        if self._is_private:
            on_first_worker(workers, self._open)

    def _open(self) -> None:
        self._ledger = LedgerFile(self._run.ledger, self._facts)

    def on_layer_scales(self) -> None:
        """To be called before α is taken from the data: writes down what that costs.

        A resumed run that has its α does not take it again.
        """
        if not self._run.has("layers"):
            on_first_worker(self._workers, self._append_scales)

    def permit(self, epoch: int, steps: int) -> int:
        """How many steps of an epoch may be taken; they are written down when this returns.

        Raises:
            UserError: the ledger cannot be written; raised on every worker.
        """
        if not self._is_private:
            return steps
        return on_first_worker(self._workers, lambda: self._permit(epoch, steps))

    def spent(self) -> Guarantee:
        """The guarantee of what the ledger says was released; on rank 0."""
        if not self._is_private:
            return self.plan
        return guarantee_of(self._facts, read_ledger(self._run.ledger).entries)

    def _permit(self, epoch: int, steps: int) -> int:
        allowed = steps
        limit = self._config.privacy.max_epsilon
        if limit is not None:
            allowed = self._most_steps(epoch, steps, limit)
        if allowed:
            self._append(self._entry(epoch, allowed))
        if allowed < steps:
            logger.warning(
                "privacy.max_epsilon: %d of the %d steps of epoch %d fit into ε ≤ %g; the run "
                "ends there",
                allowed,
                steps,
                epoch + 1,
                limit,
            )
        return allowed

    def _most_steps(self, epoch: int, steps: int, limit: float) -> int:
        """The largest number of steps with which ε stays within the limit."""
        before = read_ledger(self._run.ledger).entries

        def fits(count: int) -> bool:
            after = guarantee_of(self._facts, (*before, self._entry(epoch, count)))
            return after.holds_if.epsilon.value is not None and (
                after.holds_if.epsilon.value <= limit
            )

        if fits(steps):
            return steps
        if self._shard.sampler == "shuffle":
            return 0  # an epoch costs the same however many of its steps are taken
        low, high = 0, steps  # fits(low), not fits(high)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        return low

    def _append(self, entry: Entry) -> None:
        assert self._ledger is not None  # only rank 0 comes here
        self._ledger.append(entry)

    def _append_scales(self) -> None:
        for entry in scales_entries(self._config, self._shard, self._workers.size):
            self._append(entry)

    def _entry(self, epoch: int, steps: int) -> Entry:
        return entry_of(self._config, self._shard, self._workers.size, epoch, steps)
