"""Audit A2: one training run with canaries, and a bound on its ε from guessing them."""

from __future__ import annotations

import logging
from dataclasses import asdict, astuple, dataclass, replace
from typing import Optional

import numpy as np

from edp_mx.attacks.audit.canaries import Canaries
from edp_mx.attacks.audit.guessing import guess_coins
from edp_mx.attacks.audit.verdict import Verdict
from edp_mx.attacks.training import losses_of, without_model_selection
from edp_mx.config import ExperimentConfig
from edp_mx.data.encoding import EncodedCorpus
from edp_mx.data.utterance import Utterance
from edp_mx.dp.accounting.bound import Bound
from edp_mx.dp.accounting.guarantee import Guarantee
from edp_mx.errors import UserError
from edp_mx.runs.build import encode_part
from edp_mx.runs.build_training import Training, build_training
from edp_mx.runs.prepare import Prepared, prepare, short_hash
from edp_mx.runs.run_directory import RunDirectory, environment
from edp_mx.runtime.distributed import Workers
from edp_mx.runtime.files import write_csv
from edp_mx.runtime.progress import Heartbeat, Progress
from edp_mx.runtime.watchdog import Watchdog

logger = logging.getLogger(__name__)
LEAST_CANARIES = 10
README = """# {name}

A one-run audit of edp_mx: random utterances (canaries) were added to the training part, each by the
toss of a coin; after training the coins were guessed from the losses. The verdict is in
`audit.json`. The model was not kept.

| file | what it holds |
| --- | --- |
| `audit.json` | the lower bound on ε, its confidence, the claims, whether they are refuted |
| `canaries.csv` | for each canary its coin (1: trained on), score, text and labels |
| `scores.png`, `scores.csv` | histograms of the scores of included and of excluded canaries |
| `privacy.json` | the claims of the run: ε as published, ε that holds, what neither covers |
| `privacy_ledger.jsonl` | the releases, each written before it was made; source of the claim |
| `config.yaml` | every setting; `launch/audit.sh one-run config.yaml` repeats the audit |
| `environment.json` | command, workers, versions of packages, machine |
| `rank_<i>.log` | the log of each worker |
"""


@dataclass(frozen=True)
class OneRunSettings:
    """Settings of a one-run audit.

    Attributes:
        canaries: m; more canaries can show a larger ε.
        tokens: of each canary.
        claim: which accounting is audited, published or holds.
    """

    canaries: int = 1000
    tokens: int = 6
    confidence: float = 0.95
    claim: str = "holds"

    def __post_init__(self) -> None:
        if self.canaries < LEAST_CANARIES:
            raise UserError(
                f"--canaries is {self.canaries}; it must be {LEAST_CANARIES} or more "
                "(1000 is usual)"
            )
        if self.tokens < 1:
            raise UserError(f"--tokens is {self.tokens}; it must be 1 or more")


def audit_one_run(
    config: ExperimentConfig,
    workers: Workers,
    run: RunDirectory,
    settings: OneRunSettings,
    progress: Progress,
) -> Optional[Verdict]:
    """Train once with canaries and bound ε by guesses which were included; rank 0 has a verdict.

    The run is built, accounted and stopped as by `edp-mx train`, with any sampler, any source of
    α, a target and a budget. The theory allows all of these, since it only asks that the whole run
    be private for the turn of one coin (`one_run_p_value`): the guesser does not see the draws of
    Poisson sampling, the ledger counts α released with noise, and z₀ of `target_epsilon` and the
    end by `max_epsilon` come from public numbers. The weights of the last epoch are attacked,
    whatever `training.checkpoint` and early stopping say. The score of a canary is the fall of its
    loss since before the training.

    Args:
        workers: this worker among all; each calls this with the same arguments.
        run: an existing folder, to which only rank 0 writes.

    Edge cases: with `layer_scales: first_batch` nothing is claimed to hold, so that only the
    published claim can be refuted. Under zero_out α is taken with all canaries in their places and
    reveals nothing of the coins: its share of the claim is not attacked.
    """
    workers.agree("the configuration", short_hash((config, settings)))
    config = without_model_selection(config)
    with Watchdog.over(
        workers, folder=run.workers, seconds=config.training.watchdog_seconds
    ) as watchdog:
        return _OneRun(config, workers, run, settings, progress, watchdog.heartbeat).audit()


@dataclass(frozen=True, eq=False)
class _OneRun:
    """The steps of `audit_one_run`, in the order in which they are called."""

    config: ExperimentConfig
    workers: Workers
    run: RunDirectory
    settings: OneRunSettings
    progress: Progress
    heartbeat: Heartbeat

    def audit(self) -> Optional[Verdict]:
        prepared = prepare(self.config, self.workers, self.heartbeat, self.progress)
        canaries = self._draw(prepared)
        training = self._build(prepared, canaries)
        encoded = encode_part(self.config, canaries.utterances, prepared.vocabulary, "canary")
        before = self._losses(prepared, encoded)
        logger.info("%s", training.spending.planned().describe())
        num_epochs = self.config.training.epochs
        for epoch in training.loop.epochs(self.progress):
            logger.info("epoch %d/%d: loss %.4f", epoch.epoch + 1, num_epochs, epoch.loss)
        scores = before - self._losses(prepared, encoded)
        if not self.workers.is_first:
            return None
        claimed = training.spending.spent()
        verdict = self._judge(scores, canaries, claimed)
        self._write(verdict, scores, canaries, claimed)
        return verdict

    def _draw(self, prepared: Prepared) -> Canaries:
        """Draw canaries, the same on every worker; users say as much as counts in a step."""
        most = self.config.privacy.max_utterances_per_user
        drawn = Canaries.draw(
            prepared.vocabulary,
            count=self.settings.canaries,
            tokens=self.settings.tokens,
            utterances_per_canary=1 if prepared.users is None else most,
        )
        rows = [astuple(utterance) for utterance in drawn.utterances]
        rows, is_member = self.workers.broadcast((rows, drawn.is_member))
        utterances = tuple(Utterance(*row) for row in rows)
        return replace(drawn, utterances=utterances, is_member=is_member)

    def _build(self, prepared: Prepared, canaries: Canaries) -> Training:
        """Build the training on the training part with places for the canaries."""
        adjacency = self.config.privacy.adjacency
        utterances = canaries.insert(prepared.corpus.train, adjacency=adjacency)
        train = encode_part(self.config, utterances, prepared.vocabulary, "training")
        users = None if prepared.users is None else canaries.users(prepared.users)
        prepared = replace(prepared, train=train, users=users)
        training = build_training(prepared, self.config, self.workers, self.run, self.heartbeat)
        sampler = training.loop.sampler
        first = sampler.num_units - len(canaries.is_member)  # canaries have the last places
        sampler = canaries.place(sampler, first=first, adjacency=adjacency)
        return replace(training, loop=replace(training.loop, sampler=sampler))

    def _losses(self, prepared: Prepared, encoded: EncodedCorpus) -> np.ndarray:
        """Return the loss of each canary, (m,): summed over its utterances."""
        self.heartbeat("scoring the canaries")
        losses = losses_of(prepared.model, encoded, config=self.config, workers=self.workers)
        return losses.reshape(self.settings.canaries, -1).sum(axis=1)

    def _judge(self, scores: np.ndarray, canaries: Canaries, claimed: Guarantee) -> Verdict:
        """Guess the coins and hold the bound against the claims."""
        delta, confidence = claimed.plan.delta, self.settings.confidence
        guesses = guess_coins(scores, canaries.is_member, delta=delta, significance=1 - confidence)
        members = sum(canaries.is_member)
        return Verdict(
            audit="one-run",
            bound=guesses.epsilon,
            confidence=confidence,
            delta=delta,
            claim=self.settings.claim,
            claims={"published": claimed.as_published, "holds": claim_that_holds(claimed)},
            details={
                "canaries": len(scores),
                "members": members,
                "guesses": guesses.guesses,
                "correct": guesses.correct,
            },
            said=(
                f"  {guesses.correct} of {guesses.guesses} guesses were right; {members} of "
                f"{len(scores)} canaries were trained on",
            ),
        )

    def _write(
        self, verdict: Verdict, scores: np.ndarray, canaries: Canaries, claimed: Guarantee
    ) -> None:
        """Write everything that the verdict rests on; `audit.json` comes last."""
        run, each = self.run, canaries.utterances_per_canary
        run.write("environment", environment(self.workers.size))
        run.write("privacy", claimed.to_dict())
        rows = [
            [
                int(canaries.is_member[i // each]),
                repr(float(scores[i // each])),
                " ".join(utterance.tokens),
                " ".join(utterance.slots),
                utterance.intent,
            ]
            for i, utterance in enumerate(canaries.utterances)
        ]
        header = ["is_member", "score", "tokens", "slots", "intent"]
        write_csv(run.path / "canaries.csv", header, rows)
        run.write("audit", {**verdict.to_dict(), "settings": asdict(self.settings)})


def claim_that_holds(claimed: Guarantee) -> Bound:
    """Return the ε that the audit is held against.

    Vocabulary and lengths count as public, since no coin changes them. α from the first batch does
    depend on the coins, and no ε is claimed for it.
    """
    return claimed.holds if claimed.plan.scales_source == "first_batch" else claimed.holds_if
