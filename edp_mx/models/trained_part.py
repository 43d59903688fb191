"""The interface behind `model.trained`: which part of an encoder is trained, and how."""

from __future__ import annotations

from typing import Any, NamedTuple, Optional, Sequence, Tuple

import numpy as np
from gluonnlp.model.bert import DotProductSelfAttentionCell
from mxnet import gluon
from mxnet.gluon import nn

from edp_mx.runtime.npz import Arrays
from edp_mx.runtime.settings import Settings


class Adaptable(NamedTuple):
    """The blocks of an encoder above its frozen layers that a part may change."""

    attentions: Sequence[DotProductSelfAttentionCell]
    dense: Sequence[nn.Dense]


class TrainedPart:
    """A value of `model.trained`: an entry of `trained_parts.PARTS`.

    Attributes:
        name: the value.
        endings: of the names of the encoder's parameters that have gradients.
        settings: the settings of its own, which `TransformerSettings` inherits.
        is_merged: whether the weights of `plain` compute the same without the parameters that it
            adds.
    """

    name: str
    endings: Tuple[str, ...] = ()
    settings: Any = Settings
    is_merged = True

    def trains(self, name: str) -> bool:
        """Whether an encoder's parameter of a name has a gradient."""
        return name.endswith(self.endings)

    def check(self, config: Any) -> None:
        """Refuse settings that do not fit the encoder's sizes."""

    def change(self, encoder: gluon.Block, config: Any) -> None:
        """Change an encoder's layers, and add parameters; the shapes of the weights are known."""

    def initial_values(
        self, name: str, shape: Tuple[int, ...], generator: np.random.Generator
    ) -> Optional[np.ndarray]:
        """Draw the first values of an added parameter; None: as the encoder's."""

    def plain(self, weights: Arrays, config: Any) -> Arrays:  # noqa: ARG002
        """Return the weights of the same model without added parameters, if these can be merged."""
        return weights

    def trainer(self, encoder: gluon.Block, config: Any, *, seed: int, workers: Any, **more: Any):  # noqa: ARG002
        """Return the trainer of the model; `more` are the settings of a `PrivateTrainer`."""
        from edp_mx.dp.privacy.trainer import PrivateTrainer  # it loads Horovod

        return PrivateTrainer(**more)
