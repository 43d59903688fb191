"""Private training of a Gluon network of one's own."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

import mxnet as mx
import numpy as np
from mxnet import gluon
from mxnet.gluon.data.dataloader import default_batchify_fn

from edp_mx.dp import safeguards
from edp_mx.dp.accounting.entries import Entry
from edp_mx.dp.accounting.guarantee import Guarantee, guarantee
from edp_mx.dp.accounting.lognumber import exp_of
from edp_mx.dp.accounting.plan import Plan, refuse_other_sizes
from edp_mx.dp.given import Drawn, arrays_of, refuse_arguments, refuse_without_items, users_of
from edp_mx.dp.mixing import clipping_that_fits, refuse_state, tried_of
from edp_mx.dp.privacy.flat import FlatGradients
from edp_mx.dp.privacy.layer_scales import scales_by_size, settle_scales
from edp_mx.dp.privacy.layers import layers_of, refuse_unsafe
from edp_mx.dp.privacy.mechanism import Mechanism
from edp_mx.dp.privacy.noise import NoiseStream, refuse_equal
from edp_mx.dp.privacy.trainer import PrivateTrainer
from edp_mx.dp.sampling.dealing import deal, refuse_other_deal
from edp_mx.dp.sampling.draws import Sampler
from edp_mx.dp.spending import Spending
from edp_mx.dp.training_folder import TrainingFolder
from edp_mx.dp.unit_losses import PrivateBatch, UnitLosses
from edp_mx.dp.weights import broadcast_weights
from edp_mx.errors import UserError
from edp_mx.runtime.distributed import Workers, start

_Counted = Tuple[int, Sequence[mx.nd.NDArray]]  # the number of some records, and their arrays

logger = logging.getLogger(__name__)


class PrivateTraining:
    """Trains a network by DP-SGD or eDP-SGD, as its plan says; each worker makes one.

    Args:
        net: any Gluon network without BatchNorm, initialised. Where its hybrid blocks hold all
            parameters and ghost clipping has a rule for each operator, no gradient of a single
            example is computed; else a loop over the examples takes its place, with a warning.
        loss: `loss(net(*inputs), label)` returns one number per example, as Gluon's losses do.
        plan: from `make_plan`; it alone decides the clipping and the noise.
        optimizer: "adam", or a name that MXNet knows.
        optimizer_params: e.g. `{"learning_rate": 1e-3}`.
        folder: keeps the ledger and a checkpoint after each epoch. A training whose folder has a
            checkpoint goes on from there.
        batchify_fn: makes a batch of some items of the data set; by default it stacks them.
        chunk_size: examples that ghost clipping takes at once: memory, not privacy.
        seed: of the deal and of public choices, one for all workers; draws and noise are secret.
        users: each example's user, a name or a number, for the unit "user".
        max_examples_per_user: how many examples of a user a step takes at most.

    Raises:
        UserError: a network that cannot be trained with privacy, or a plan for other workers.

    Guarantee: `epsilon` holds for all weights of the training together, if inputs and labels of an
        example depend on that example alone, and on no random numbers but NumPy's and Python's
        global ones, which begin each step at a secret place. The losses that `step` returns, and
        whatever else is computed from the data, have no noise; the plan's ε does not cover them.

    Example::

        plan = make_plan(num_examples=len(dataset), sample_rate=0.01, epochs=10, target_epsilon=8)
        private = PrivateTraining(net, gluon.loss.SoftmaxCrossEntropyLoss(), plan=plan)
        for batch in private.batches(dataset):
            private.step(batch)
        print(private.epsilon)
    """

    def __init__(
        self,
        net: gluon.Block,
        loss: Callable[[Any, Any], mx.nd.NDArray],
        *,
        plan: Plan,
        optimizer: str = "adam",
        optimizer_params: Optional[Dict[str, Any]] = None,
        folder: Optional[str] = None,
        batchify_fn: Optional[Callable[[List[Any]], Any]] = None,
        chunk_size: int = 64,
        seed: int = 0,
        users: Optional[Sequence[Any]] = None,
        max_examples_per_user: Optional[int] = None,
    ) -> None:
        named = (optimizer, dict(optimizer_params or {}))
        refuse_arguments(net, loss, plan, *named, chunk_size=chunk_size, seed=seed)
        release = plan.release
        if release is None or plan.seed_is_fixed or plan.private_inputs:
            raise UserError("this plan is of a run of edp-mx; take one from make_plan")
        self._workers: Workers = start()
        if release.num_workers != self._workers.size:
            raise UserError(
                f"the plan is for num_workers={release.num_workers}, but {self._workers.size} are "
                "running: give make_plan their number"
            )
        self._users = users_of(users, max_examples_per_user, is_unit=release.clips.is_user)
        refuse_unsafe(net)
        self.net, self.plan, self.epoch = net, plan, 0
        self._loss, self._optimizer = loss, named
        self._folder = TrainingFolder(folder)
        self._batchify = batchify_fn or default_batchify_fn
        self._chunk_size, self._seed, self._most = chunk_size, seed, max_examples_per_user
        self._dataset: Any = None
        self._entries = self._entries_by(lambda: self._folder.spent(plan))
        self._drawn: Optional[PrivateBatch] = None

    def batches(self, dataset: Any, *, epochs: Optional[int] = None) -> Iterator[PrivateBatch]:
        """Yield the draw of each step, to the end of the plan or for some epochs.

        Each batch must be given to `step` before the next one is drawn. An epoch that is not taken
        to its end is begun again by the next call, and counted again.

        Args:
            dataset: of items `(input, …, label)`, with a length; one for all calls and workers.
            epochs: how many epochs to go on for.
        """
        if self._dataset is None:
            refuse_without_items(dataset)
            try:
                with safeguards.library_words():
                    self._prepare(dataset)
            except BaseException:
                self._dataset = None  # a call after the mending begins anew
                raise
        elif dataset is not self._dataset:
            raise UserError("batches() was given another data set than before: make a new training")
        end = self.plan.epochs if epochs is None else min(self.epoch + epochs, self.plan.epochs)
        while self.epoch < end:
            epoch, is_repeated = self.epoch, any(e.epoch == self.epoch for e in self._entries)
            steps = self._spending.permit(epoch)
            self._entries = self._entries_by(self._spending.entries)
            if is_repeated:
                said = "epoch %d counts again: epsilon is %.3g by its end"
                logger.warning(said, epoch + 1, self.epsilon)
            for step, draw in enumerate(islice(self._sampler.draws(epoch), steps)):
                is_last = step + 1 == self.plan.steps_per_epoch
                with safeguards.secret_randomness():
                    self._drawn = PrivateBatch(self._losses.batches(draw), epoch, step, is_last)
                yield self._drawn
                if self._drawn is not None:
                    raise UserError("a batch was drawn but not trained on: call step() on each")
            if steps < self.plan.steps_per_epoch:
                self._keep()  # the budget is spent
                return

    def step(self, batch: PrivateBatch) -> float:
        """Take one private step; return the loss per unit on this worker, which has no noise.

        Raises:
            UserError: another batch than was drawn last, or other parameters than at first.
        """
        if batch is not self._drawn or self._drawn is None:
            raise UserError(
                "step() was given a batch that batches() did not draw, or an old one: only what "
                "was drawn at random, once, is counted"
            )
        trained = {p.name for p in self.net.collect_params().values() if p.grad_req != "null"}
        if trained != {p.name for p in self.trainer.parameters}:
            raise UserError(
                "the network has other trainable parameters than when the training began: make a "
                "new PrivateTraining after changing or freezing a part"
            )
        self._drawn = None
        losses = self._losses(batch.chunks, epoch=batch.epoch, step=batch.step)
        with safeguards.library_words(), safeguards.secret_randomness():
            released = self._mechanism.privatise(losses, epoch=batch.epoch)
        self.trainer.step_private(released)
        if batch.is_last:
            self.epoch += 1
            self._keep()
        return float(released.loss.asscalar())

    @property
    def guarantee(self) -> Guarantee:
        """The whole privacy statement; an epoch is counted from its beginning."""
        return guarantee(self.plan, self._entries)

    @property
    def epsilon(self) -> float:
        """The ε that holds for the releases so far, at the plan's δ."""
        return exp_of(self.guarantee.holds.epsilon.log)

    def _prepare(self, dataset: Any) -> None:
        """Deal the data, build mechanism and sampler of the plan; go on from a checkpoint."""
        self._dataset, size = dataset, len(dataset)
        refuse_other_deal(self._workers, self._batch_of, size, self._seed, self._users)
        self._sampler = self._dealt(size)
        batch_of = partial(self._batch_of, items=Drawn(dataset))
        first = [batch_of(r) for r in np.array_split(tried_of(size), 3) if len(r)]
        refuse_state(self.net, [partial(self._loss_of, batch) for batch in first])
        broadcast_weights(self.net, self._workers)
        safeguards.warn_of_another_training(self.net)
        flat = FlatGradients(layers_of(self.net))
        scales = self._scales_of(flat)
        tried, workers = (self._loss_of, batch_of, size), self._workers
        kind, release = self.plan.clipping, self.plan.released.with_layer_scales(scales)
        clipping, refusal = clipping_that_fits(
            kind, release, flat, self.net, *tried, chunk_size=self._chunk_size, workers=workers
        )
        if refusal:
            logger.warning("%s. A loop over the examples takes its place.", refusal)
            self.plan = replace(self.plan, clipping="loop")
        opening = partial(self._folder.open_ledger, self.plan)
        self._spending = Spending(self.plan, self._workers, opening)
        self.plan = self._spending.complete(scales)
        noise = NoiseStream.from_operating_system(gaussian=self.plan.gaussian)
        refuse_equal(self._workers.gather(noise.fingerprint))
        self._mechanism = Mechanism(plan=self.plan, clipping=clipping, noise=noise)
        name, settings = self._optimizer
        self.trainer = PrivateTrainer(flat=flat, optimizer=name, optimizer_params=settings)
        self._losses = UnitLosses(
            self._loss_of,
            self._batch_of,
            lengths=np.zeros(size),
            sampler=self._sampler,
            mechanism=self._mechanism,
            seed=self._seed,
            rank=self._workers.rank,
        )
        self._entries = self._entries_by(self._spending.entries)
        self.epoch = self._folder.resume(self.net, self.trainer, self._workers)
        self._frozen = safeguards.frozen_digests(self.net)

    def _scales_of(self, flat: FlatGradients) -> Tuple[float, ...]:
        by_size = self.plan.scales_source == "sqrt_dim"
        return settle_scales(scales_by_size(flat) if by_size else np.ones(len(flat.layers)))

    def _dealt(self, num_records: int) -> Sampler:
        release = self.plan.released
        if self._users is not None and len(self._users) != num_records:
            raise UserError(f"users has {len(self._users)} of the {num_records} examples' users")
        sampler = deal(
            unit=release.unit,
            sampler=release.sampler,
            num_records=num_records,
            batch_size=round(release.batch_size),
            rank=self._workers.rank,
            num_workers=self._workers.size,
            seed=self._seed,
            micro_batches_per_worker=release.micro_batches_per_worker,
            users=self._users,
            max_utterances_per_user=self._most,
            steps_per_epoch=self.plan.steps_per_epoch if release.draws.by_chance else None,
            adjacency=release.adjacency,
        )
        refuse_other_sizes(self.plan, sampler.sizes)
        return sampler

    def _batch_of(self, records: np.ndarray, items: Any = None) -> _Counted:
        source = self._dataset if items is None else items
        return len(records), arrays_of(source, records, self._batchify, self.net)

    def _loss_of(self, batch: _Counted) -> mx.nd.NDArray:
        """The losses of a batch, one per record."""
        count, (*inputs, label) = batch
        made = self._loss(self.net(*inputs), label)
        if made.shape != (count,):
            raise UserError(
                f"the loss of {count} examples has the shape {made.shape}: it must be one number "
                "per example, which is clipped by itself"
            )
        return made

    def _entries_by(self, read: Callable[[], List[Dict[str, Any]]]) -> Tuple[Entry, ...]:
        return tuple(map(Entry.from_dict, self._workers.on_first(read)))

    def _keep(self) -> None:
        safeguards.refuse_spoilt(self.net, self._frozen)
        save = partial(self._folder.save, self.net, self.trainer)
        self._workers.on_first(lambda: save(epochs=self.epoch, spending=self._spending))
