"""A2: one training run with canaries in it, and what guessing them back proves about its ε."""

from __future__ import annotations

import csv
import io
import logging
from dataclasses import asdict, dataclass, replace
from typing import Any, Callable, Dict, Iterable, List

import mxnet as mx
import numpy as np
from mxnet import autograd

from edp_mx.accounting.guarantee import Guarantee, guarantee
from edp_mx.attacks.one_run import Guesses, guess
from edp_mx.attacks.verdict import Verdict
from edp_mx.config import ExperimentConfig
from edp_mx.data.corpus import PUBLIC_CORPORA
from edp_mx.data.encoding import EncodedCorpus
from edp_mx.data.sampling import Shard
from edp_mx.distributed import Workers, device
from edp_mx.errors import UserError
from edp_mx.experiments.audit_canaries import Canaries
from edp_mx.experiments.build import encode_part
from edp_mx.experiments.mechanism import build_mechanism
from edp_mx.experiments.prepare import Prepared, broadcast_weights, prepare, short_hash
from edp_mx.experiments.run_directory import RunDirectory, environment
from edp_mx.files import write_text
from edp_mx.models.intent_slot import IntentSlotModel
from edp_mx.privacy.flat import FlatGradients
from edp_mx.privacy.layers import layers_of
from edp_mx.privacy.trainer import PrivateTrainer
from edp_mx.training.learning_rates import set_learning_rates
from edp_mx.training.loop import epochs
from edp_mx.watchdog import Peer, Watchdog

logger = logging.getLogger(__name__)

README = """# {name}

A one-run audit of edp_mx: a model was trained on a corpus with random utterances (canaries) in it,
each by the toss of a coin, and then asked which were in. Read `audit.json` for the verdict. The
model was thrown away.

| file | what it holds |
| --- | --- |
| `audit.json` | the lower bound on ε, its confidence, the claims, whether they are refuted |
| `canaries.csv` | each canary: its coin (1: trained on), its score, its text and labels |
| `scores.png`, `scores.csv` | the scores of those in and those out, as histograms |
| `privacy.json` | what the run claims: ε as published, ε that holds, what neither covers |
| `config.yaml` | every setting, written out; `launch/audit.sh one-run config.yaml` does it again |
| `environment.json` | command, workers, versions of the packages, machine |
| `rank_<i>.log` | each worker's log |
"""
LEAST_CANARIES = 10
COUNTED_SCALES = ("ones", "sqrt_dim", "public_batch", "first_batch")


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


@dataclass(frozen=True)
class OneRunAudit:
    """The outcome of A2."""

    verdict: Verdict
    guesses: Guesses
    canaries: int
    members: int

    @property
    def is_refuted(self) -> bool:
        """Whether the audited claim is false."""
        return self.verdict.is_refuted

    def to_dict(self) -> Dict[str, Any]:
        """Strict JSON, for `audit.json`."""
        return {
            "audit": "one-run",
            **self.verdict.to_dict(),
            "canaries": self.canaries,
            "members": self.members,
            "guesses": self.guesses.guesses,
            "correct": self.guesses.correct,
        }

    def describe(self) -> str:
        """The verdict and what it rests on."""
        return (
            f"{self.verdict.describe()}\n  {self.guesses.correct} of {self.guesses.guesses} "
            f"guesses were right; {self.members} of {self.canaries} canaries were trained on"
        )


def audit_one_run(
    config: ExperimentConfig,
    workers: Workers,
    run: RunDirectory,
    settings: OneRunSettings,
    progress: Callable[..., Iterable[Any]],
) -> OneRunAudit:
    """Trains once with canaries and guesses them back.

    The weights of the last epoch are attacked; `training.checkpoint` and early stopping have no
    say. A canary's score is how much its loss has fallen since before the training.

    Args:
        config: of the run, with its mechanism.
        workers: this worker among all; each calls this with the same arguments.
        run: a folder that exists; only rank 0 writes to it.
        progress: `progress(iterable, description, total)`: a bar, or the iterable itself.

    Returns:
        The same on every worker.

    Raises:
        UserError: bad settings or data, or workers that disagree.
    """
    workers.agree("the configuration", short_hash((config, settings)))
    peers = workers.gather(Peer.myself(workers.rank))
    with Watchdog(
        peers=peers,
        rank=workers.rank,
        folder=run.path / ".workers",
        seconds=config.training.watchdog_seconds,
    ) as watchdog:
        watchdog.progress("preparing the data")
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
        alive: Callable[[str], None],
    ) -> None:
        self.config, self.workers, self.run, self.settings = config, workers, run, settings
        self.progress, self.alive = progress, alive

    def audit(self) -> OneRunAudit:
        """See the function of that name."""
        _refuse_unknown(self.config)
        prepared = prepare(self.config, self.workers, device(self.workers))
        canaries = self.workers.broadcast(
            Canaries.draw(
                prepared.vocabulary, count=self.settings.canaries, tokens=self.settings.tokens
            )
        )
        encoded = encode_part(self.config, canaries.utterances, prepared.vocabulary, "canary")
        training_part = canaries.insert(prepared.corpus.train)
        self.prepared = replace(
            prepared,
            train=encode_part(self.config, training_part, prepared.vocabulary, "training"),
        )
        broadcast_weights(self.prepared.model, self.workers)
        before = self._losses(encoded)
        claimed = self._train()
        scores = before - self._losses(encoded)
        audit = self._judge(scores, canaries, claimed)
        if self.workers.is_first:
            self._write(audit, scores, canaries, claimed)
        return audit

    def _train(self) -> Guarantee:
        """Trains as `edp-mx train` does; returns what that claims."""
        training, prepared = self.config.training, self.prepared
        shard = self._shard(prepared)
        flat = FlatGradients(layers_of(prepared.model))
        mechanism = build_mechanism(self.config, self.workers, prepared, shard, flat)
        claimed = self._guarantee(shard, mechanism.release if mechanism else None)
        logger.info("%s", claimed.describe())
        set_learning_rates(prepared.model, training.learning_rate, training.learning_rates)
        trainer = PrivateTrainer(
            flat=flat,
            mechanism=mechanism,
            optimizer=training.optimizer,
            optimizer_params={"learning_rate": training.learning_rate},
        )
        for epoch in epochs(
            prepared.model,
            trainer,
            prepared.train,
            shard,
            num_epochs=training.epochs,
            schedule=training.schedule,
            seed=training.seed,
            workers=self.workers,
            on_step=self.alive,
            wrap=lambda batches, epoch, steps: self.progress(
                batches, f"epoch {epoch + 1}/{training.epochs}", steps
            ),
        ):
            logger.info("epoch %d/%d: loss %.4f", epoch.epoch + 1, training.epochs, epoch.loss)
        return claimed

    def _shard(self, prepared: Prepared) -> Shard:
        training = self.config.training
        return Shard.deal(
            len(prepared.train),
            batch_size=training.batch_size,
            rank=self.workers.rank,
            num_workers=self.workers.size,
            seed=training.seed,
            lengths=prepared.train.lengths,
            length_buckets=training.length_buckets,
            adjacency=self.config.privacy.adjacency,
        )

    def _guarantee(self, shard: Shard, release: Any) -> Guarantee:
        """The claim of a training run with these settings on as many utterances."""
        privacy, training, prepared = self.config.privacy, self.config.training, self.prepared
        assert privacy.noise_multiplier is not None  # where no ε is given; see `_refuse_unknown`
        return guarantee(
            mechanism=privacy.mechanism,
            release=release,
            noise_multiplier=privacy.noise_multiplier,
            decay=privacy.decay,
            epochs=training.epochs,
            steps=training.epochs * shard.steps_per_epoch,
            num_examples=len(prepared.train),
            delta=privacy.delta,
            delta_mode=privacy.delta_mode,
            corpus_is_public=prepared.corpus.name in PUBLIC_CORPORA,
            sampler="shuffle",
            scales_source=privacy.layer_scales,
            vocabulary_is_public=prepared.vocabulary.is_public,
            seed_is_fixed=privacy.insecure_fixed_seed is not None,
            uses_lengths=training.length_buckets > 0,
        )

    def _losses(self, canaries: EncodedCorpus) -> np.ndarray:
        """The loss of each canary without dropout, (m,), on every worker."""
        self.alive("scoring the canaries")
        size = self.config.training.evaluation_batch_size
        starts = range(0, len(canaries), size)
        share = {
            start: _batch_losses(
                self.prepared.model, canaries, range(start, min(start + size, len(canaries)))
            )
            for start in starts[self.workers.rank :: self.workers.size]
        }
        found: Dict[int, np.ndarray] = {}
        for part in self.workers.gather(share):
            found.update(part)
        return np.concatenate([found[start] for start in starts])

    def _judge(self, scores: np.ndarray, canaries: Canaries, claimed: Guarantee) -> OneRunAudit:
        guesses = guess(
            scores,
            canaries.is_member,
            delta=claimed.delta,
            significance=1 - self.settings.confidence,
        )
        verdict = Verdict(
            subject="the run",
            bound=guesses.epsilon,
            confidence=self.settings.confidence,
            delta=claimed.delta,
            claim=self.settings.claim,
            # The canaries are made of a vocabulary that is given, which its conditions grant.
            claims={"published": claimed.as_published, "holds": claimed.holds_if},
        )
        return OneRunAudit(verdict, guesses, len(scores), sum(canaries.is_member))

    def _write(
        self, audit: OneRunAudit, scores: np.ndarray, canaries: Canaries, claimed: Guarantee
    ) -> None:
        """Everything that the verdict rests on."""
        self.run.write("environment", environment(self.workers.size))
        self.run.write("privacy", claimed.to_dict())
        write_text(self.run.path / "canaries.csv", _as_csv(scores, canaries))
        self.run.write("audit", {**audit.to_dict(), "settings": asdict(self.settings)})


def create(run: RunDirectory, name: str, config: str) -> None:
    """Makes the folder with its README and its configuration.

    Raises:
        UserError: the folder holds something already.
    """
    run.create(name, config)
    write_text(run.path / "README.md", README.format(name=name))


def _refuse_unknown(config: ExperimentConfig) -> None:
    """What the claim of this audit would not count."""
    for key, known in (("sampler", ("shuffle",)), ("layer_scales", COUNTED_SCALES)):
        if getattr(config.privacy, key) not in known:
            raise UserError(
                f"privacy.{key}: a one-run audit knows only {', '.join(known)}, not "
                f"{getattr(config.privacy, key)}; set it for the audit with --set"
            )
    for key in ("target_epsilon", "max_epsilon"):
        if getattr(config.privacy, key) is not None:
            raise UserError(
                f"privacy.{key}: a one-run audit has a noise multiplier of its own and runs to its "
                "end; set privacy.noise_multiplier instead"
            )


def _batch_losses(
    model: IntentSlotModel, canaries: EncodedCorpus, indices: Iterable[int]
) -> np.ndarray:
    """Losses (n,) float64, in prediction mode."""
    with autograd.pause(train_mode=False):
        losses: mx.nd.NDArray = model.loss(canaries.batch(list(indices)))
    return losses.asnumpy().astype(np.float64)


def _as_csv(scores: np.ndarray, canaries: Canaries) -> str:
    """One line a canary."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["is_member", "score", "tokens", "slots", "intent"])
    rows: List[Any] = list(zip(canaries.is_member, scores, canaries.utterances))
    for is_member, score, utterance in rows:
        joined = (" ".join(utterance.tokens), " ".join(utterance.slots), utterance.intent)
        writer.writerow([int(is_member), repr(float(score)), *joined])
    return text.getvalue()
