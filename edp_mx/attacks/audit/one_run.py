"""A2: one training run with canaries in it, and what guessing them back proves about its ε."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import Any, Callable, Iterable, Tuple

import numpy as np

from edp_mx.accounting.bound import Bound
from edp_mx.accounting.guarantee import Guarantee
from edp_mx.attacks.audit.canaries import Canaries, canary_losses
from edp_mx.attacks.audit.directory import write_audit
from edp_mx.attacks.audit.guessing import OneRunAudit, guess_coins
from edp_mx.attacks.audit.verdict import Verdict
from edp_mx.config import ExperimentConfig
from edp_mx.data.encoding import EncodedCorpus
from edp_mx.errors import UserError
from edp_mx.runs.build import encode_part
from edp_mx.runs.prepare import Prepared, prepare, short_hash
from edp_mx.runs.run_directory import RunDirectory
from edp_mx.runs.set_up import SetUp, set_up_on
from edp_mx.runtime.distributed import Workers, device
from edp_mx.runtime.watchdog import Peer, Watchdog

logger = logging.getLogger(__name__)
LEAST_CANARIES = 10


@dataclass(frozen=True)
class OneRunSettings:
    """How a run is audited.

    Attributes:
        canaries: m; the more, the larger an ε can be shown.
        tokens: of each canary.
        confidence: of the bound.
        claim: which accounting is audited, published or holds.
    """

    canaries: int = 1000
    tokens: int = 6
    confidence: float = 0.95
    claim: str = "holds"

    def __post_init__(self) -> None:
        if self.canaries < LEAST_CANARIES:
            raise UserError(
                f"--canaries is {self.canaries}; fewer than {LEAST_CANARIES} show nothing, and "
                "1000 are usual"
            )
        if self.tokens < 1:
            raise UserError(f"--tokens is {self.tokens}; a canary has at least one")


def audit_one_run(
    config: ExperimentConfig,
    workers: Workers,
    run: RunDirectory,
    settings: OneRunSettings,
    progress: Callable[..., Iterable[Any]],
) -> OneRunAudit:
    """Trains once with canaries and guesses them back.

    The run is built, accounted and stopped as `edp-mx train` does it: any sampler, any source of
    α, a target and a budget. The theory allows them all, since it asks only that the whole run be
    private for the turn of one coin (`one_run_p_value`): Poisson sampling, whose draws the guesser
    does not see; α released with noise, which the ledger counts; z₀ from `target_epsilon` and an
    end by `max_epsilon`, which come from public numbers. The weights of the last epoch are
    attacked; `training.checkpoint` and early stopping have no say. A canary's score is how much
    its loss has fallen since before the training.

    Args:
        config: of the run, with its mechanism.
        workers: this worker among all; each calls this with the same arguments.
        run: a folder that exists; only rank 0 writes to it.
        progress: `progress(iterable, description, total)`: a bar, or the iterable itself.

    Returns:
        The same on every worker.

    Raises:
        UserError: bad settings or data, or workers that disagree.

    Edge cases: with `layer_scales: first_batch` nothing is claimed to hold, so that only the
    published claim can be refuted. Under zero_out α is taken with all canaries in their places,
    so that it tells nothing of the coins: its share of the claim is not attacked.
    """
    workers.agree("the configuration", short_hash((config, settings)))
    peers = workers.gather(Peer.myself(workers.rank))
    with Watchdog(
        peers=peers,
        rank=workers.rank,
        folder=run.path / ".workers",
        seconds=config.training.watchdog_seconds,
    ) as watchdog:
        return _OneRun(config, workers, run, settings, progress, watchdog.progress).audit()


class _OneRun:
    """The steps of `audit_one_run`, in the order in which they are called."""

    def __init__(
        self,
        config: ExperimentConfig,
        workers: Workers,
        run: RunDirectory,
        settings: OneRunSettings,
        progress: Callable[..., Iterable[Any]],
        heartbeat: Callable[[str], None],
    ) -> None:
        last = replace(config.training, checkpoint="last", early_stop_patience=0)
        self.config = replace(config, training=last)
        self.workers, self.run, self.settings = workers, run, settings
        self.progress, self.heartbeat = progress, heartbeat

    def audit(self) -> OneRunAudit:
        """See the function of that name."""
        self.heartbeat("preparing the data")
        prepared = prepare(
            self.config, self.workers, device(self.workers), self.heartbeat, self.progress
        )
        canaries, encoded = self._canaries(prepared)
        training_part = canaries.insert(prepared.corpus.train, adjacency=self._adjacency)
        encoded_part = encode_part(self.config, training_part, prepared.vocabulary, "training")
        users = None if prepared.users is None else canaries.users(prepared.users)
        parts = set_up_on(
            replace(prepared, train=encoded_part, users=users),
            self.config,
            self.workers,
            self.run,
            self.heartbeat,
        )
        before = self._losses(prepared, encoded)
        self._train(parts, canaries)
        scores = before - self._losses(prepared, encoded)
        claimed = self.workers.on_first(parts.spending.spent)
        audit = self._judge(scores, canaries, claimed)
        if self.workers.is_first:
            write_audit(
                self.run,
                audit,
                scores=scores,
                canaries=canaries,
                claimed=claimed,
                settings=self.settings,
                num_workers=self.workers.size,
            )
        return audit

    @property
    def _adjacency(self) -> str:
        return self.config.privacy.adjacency

    @property
    def _most_utterances(self) -> int:
        """What one user may say in a step: more of them would not move it further."""
        return self.config.privacy.max_utterances_per_user

    def _canaries(self, prepared: Prepared) -> Tuple[Canaries, EncodedCorpus]:
        """The same on every worker, as text and encoded."""
        canaries = self.workers.broadcast(
            Canaries.draw(
                prepared.vocabulary,
                count=self.settings.canaries,
                tokens=self.settings.tokens,
                utterances_per_canary=1 if prepared.users is None else self._most_utterances,
            )
        )
        return canaries, encode_part(
            self.config, canaries.utterances, prepared.vocabulary, "canary"
        )

    def _train(self, parts: SetUp, canaries: Canaries) -> None:
        """Trains as `edp-mx train` does, with empty places where the coins say so."""
        training = self.config.training
        logger.info("%s", parts.spending.planned().describe())
        first = parts.sampler.num_units - len(canaries.is_member)  # canaries have the last places
        sampler = canaries.place(parts.sampler, first=first, adjacency=self._adjacency)
        trained = replace(parts, sampler=sampler).epochs(
            training, self.workers, self.progress, self.heartbeat
        )
        for epoch in trained:
            logger.info("epoch %d/%d: loss %.4f", epoch.epoch + 1, training.epochs, epoch.loss)

    def _losses(self, prepared: Prepared, encoded: EncodedCorpus) -> np.ndarray:
        """The loss of each canary, (m,): summed over its utterances."""
        self.heartbeat("scoring the canaries")
        size = self.config.training.evaluation_batch_size
        losses = canary_losses(prepared.model, encoded, workers=self.workers, batch_size=size)
        return losses.reshape(self.settings.canaries, -1).sum(axis=1)

    def _judge(self, scores: np.ndarray, canaries: Canaries, claimed: Guarantee) -> OneRunAudit:
        guesses = guess_coins(
            scores,
            canaries.is_member,
            delta=claimed.plan.delta,
            significance=1 - self.settings.confidence,
        )
        verdict = Verdict(
            subject="the run",
            bound=guesses.epsilon,
            confidence=self.settings.confidence,
            delta=claimed.plan.delta,
            claim=self.settings.claim,
            claims={"published": claimed.as_published, "holds": claim_that_holds(claimed)},
        )
        return OneRunAudit(verdict, guesses, len(scores), sum(canaries.is_member))


def claim_that_holds(claimed: Guarantee) -> Bound:
    """The ε that is held against the audit: under the conditions that its canaries grant.

    Those are that vocabulary and lengths are public: neither depends on a coin. α from the first
    batch does depend on them, and no ε is claimed for it.
    """
    return claimed.holds if claimed.plan.scales_source == "first_batch" else claimed.holds_if
