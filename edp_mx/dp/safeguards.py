"""What is watched while a network of somebody else's is trained."""

from __future__ import annotations

import logging
import os
import random
import re
import weakref
from contextlib import contextmanager
from typing import Dict, Iterator, Mapping

import numpy as np
from mxnet import gluon

from edp_mx.dp.accounting.clippings import TAKE_LOOP
from edp_mx.dp.privacy.layers import digests_of
from edp_mx.errors import UserError

_trained: weakref.WeakSet[gluon.Block] = weakref.WeakSet()  # by trainings of this process
logger = logging.getLogger(__name__)


def warn_of_another_training(network: gluon.Block) -> None:
    """Warn where another training of this process has had the network."""
    if network in _trained:
        logger.warning(
            "this network was trained before: epsilon counts this training alone. Make its weights "
            "anew, or add what the other spent (edp-mx budget, on both folders)"
        )
    _trained.add(network)


@contextmanager
def library_words() -> Iterator[None]:
    """Name in errors what `make_plan` takes, in place of keys of a configuration."""
    try:
        yield
    except UserError as error:
        text = str(error).replace(TAKE_LOOP, 'give make_plan clipping="loop"')
        text = re.sub(r"\b(?:privacy|training)\.(?=\w)", "", text).replace("utterance", "example")
        raise UserError(text, is_shared=error.is_shared) from error


@contextmanager
def secret_randomness() -> Iterator[None]:
    """Have NumPy's and Python's global generators begin at a secret place, and put them back.

    With a seed of the program's, who else is in a batch would decide which random numbers an
    example gets in its augmentation or in a mask, around the clipping.
    """
    states = np.random.get_state(), random.getstate()
    np.random.seed(np.frombuffer(os.urandom(64), np.uint32))
    random.seed(os.urandom(64))
    try:
        yield
    finally:
        np.random.set_state(states[0])
        random.setstate(states[1])


def frozen_digests(network: gluon.Block) -> Dict[str, bytes]:
    """Return the SHA-256 of each parameter that is not trained."""
    return digests_of(p for p in network.collect_params().values() if p.grad_req == "null")


def refuse_spoilt(network: gluon.Block, before: Mapping[str, bytes]) -> None:
    """Refuse to keep a network whose frozen parameters have changed, or whose weights diverged.

    `before` are its `frozen_digests` at the start.
    """
    for name, digest in frozen_digests(network).items():
        if before.get(name, digest) != digest:
            raise UserError(
                f"a pass through the network has changed {name}, such as a running mean: that has "
                "no noise, and no epsilon covers it; take it out of the network and train anew"
            )
    for parameter in network.collect_params().values():
        if not np.isfinite(parameter.data().asnumpy()).all():
            raise UserError(
                f"{parameter.name} is no longer finite: the training has diverged; begin anew with "
                "a smaller learning rate. The last checkpoint is of the epoch before"
            )
