"""The contract of an encoder, and of a family of encoders for `model.family`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

import mxnet as mx
import numpy as np
from mxnet import gluon
from mxnet.gluon import nn

from edp_mx.data.batching import Batch, PieceInputs
from edp_mx.data.config import DataConfig
from edp_mx.data.tokenizer import Tokenizer
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.errors import UserError
from edp_mx.models.initialization import Rule, initial_values
from edp_mx.models.trained_part import Adaptable, TrainedPart
from edp_mx.models.trained_parts import OF_EVERY_FAMILY, PARTS
from edp_mx.runtime.files import path_field
from edp_mx.runtime.limits import MOST_NORM
from edp_mx.runtime.settings import Settings, setting


@dataclass(frozen=True)
class ModelConfig(Settings):
    """Settings of an encoder: a frozen dataclass per family, whose `family` names it.

    Attributes:
        trained: all, heads (the encoder is frozen, and its outputs are computed once) or biases
            (of the encoder, and the heads).
        start_from: a folder to start from: a finished run, or for a BERT a checkpoint in Hugging
            Face's layout. Its sizes are taken where none are set beside it, and the weights that
            fit; they count as public unless they are from the same corpus.
        heads: drawn, or names: with a run in start_from, a label that the run does not know starts
            from the run's labels that are most alike in name.
        intents: how the intent is read; pooled: from one vector of the utterance.
        intent_weight: of the intent's loss beside the slots', which is longer by the tokens: where
            each gradient is clipped, the longer part takes most of C.
        slot_moves: which slot tags may follow one another: any, or bio (an I- tag only goes on with
            its own slot), so that a CRF with much noise need not learn that.
    """

    family: str = ""
    trained: str = setting("all", one_of=[part.name for part in OF_EVERY_FAMILY])
    start_from: Optional[str] = path_field()
    heads: str = setting("drawn", one_of=("drawn", "names"))
    intents: str = setting("pooled", one_of=("pooled",))
    intent_weight: float = setting(1.0, above=0, at_most=MOST_NORM)
    slot_moves: str = setting("any", one_of=("any", "bio"))

    @property
    def written_around(self) -> Optional[str]:
        """The template that each utterance is written in, if there is one."""
        return None

    @property
    def trained_part(self) -> TrainedPart:
        """The part of the encoder that `trained` names."""
        return PARTS[self.trained]


class Encoder(gluon.HybridBlock):
    """Token states and one vector per utterance.

    A subclass sets `output_size` H, and its `hybrid_forward` takes what `inputs` returns. For ghost
    clipping, every block that has parameters is hybrid and its inputs have the examples first.

    Attributes:
        num_pooled: G, of how many vectors of size H an utterance's vector consists.
        needs_masked_lm: whether it starts from a checkpoint's masked-LM head.

    Shapes: inputs → states (N, T, H), pooled (N, G H).
    """

    output_size: int
    num_pooled = 1
    needs_masked_lm = False
    initial_values: Rule = staticmethod(initial_values)

    def inputs(self, batch: Batch, context: mx.Context) -> Tuple[mx.nd.NDArray, ...]:
        """Return the encoder's inputs of a batch, checked, as NDArrays."""
        raise NotImplementedError

    def frozen_part(self) -> Optional[FrozenPart]:
        """Return the frozen lower part of an encoder whose upper part is trained; None if none."""
        return None

    def adaptable(self, frozen_layers: int) -> Adaptable:
        """Return the blocks of a transformer above its lowest layers, with the pooler."""
        raise NotImplementedError

    def tables(self, vocabulary: Vocabulary) -> Dict[str, Sequence[str]]:  # noqa: ARG002
        """Return the words, characters or pieces of the rows of parameters, by parameter."""
        return {}

    def masked_piece_head(self) -> Any:
        """Return a new head that scores all pieces at masked places; None for one without."""
        return None

    def piece_states(self, inputs: PieceInputs) -> Tuple[mx.nd.NDArray, mx.nd.NDArray]:
        """Return the states of all pieces, and the pieces' vectors, where there is such a head.

        Shapes: → (N, P, H), (V, H).
        """
        raise NotImplementedError

    def next_piece_scorer(self) -> Optional[Encoder]:
        """Return the same network with the losses of next pieces; None for one that has none.

        Shapes: its `inputs`, places (N, R) and the pieces behind them (N, R), −1 for none → their
            losses, and the likeliest pieces there, (N, R) each.
        """
        return None

    def start_label_head(
        self, head: nn.Dense, vocabulary: Vocabulary, *, labels: Iterable[int], checkpoint: Any
    ) -> None:
        """Give the rows of some labels first values that the encoder knows of, if it knows any.

        Args:
            labels: which rows.
            checkpoint: what the model starts from; None for nothing.
        """

    def set_word_vectors(self, vectors: np.ndarray) -> None:  # noqa: ARG002
        """Start from word vectors made elsewhere. Shapes: (words, dimension)."""
        raise UserError("data.embeddings: this model.family has no word vectors to start from")


def refuse_too_long(data: DataConfig, config: Any) -> None:
    """Refuse utterances of more pieces than a transformer has positions."""
    if data.max_pieces > config.max_positions:
        raise UserError(
            f"data.max_pieces is {data.max_pieces}, but the model has only "
            f"{config.max_positions} positions (model.max_positions); lower it"
        )


@dataclass(frozen=True, eq=False)
class FrozenPart:
    """The lower part of an encoder, in which nothing is trained, and the rest of it.

    Attributes:
        states: batch → rows of states and how many of them are not padding, without dropout.
        rest: the rest of the encoder, which reads those rows (`StateInputs`) and shares its
            parameters with the encoder.
        places_alike: by the shape of a batch its places, together where an utterance has the same
            states to the byte; filled while states are stored.

    Shapes: states: → (M, R, H) float32, (M,).
    """

    states: Callable[[Batch], Tuple[np.ndarray, np.ndarray]]
    rest: Encoder
    places_alike: Dict[Tuple[int, ...], List[List[int]]] = field(default_factory=dict)


@dataclass(frozen=True)
class Family:
    """A kind of encoder: an entry of `registry.FAMILIES`.

    Attributes:
        name: the value of `model.family`; `title`, what people call it.
        has_pieces: whether it reads the pieces of a tokenizer; else words and their characters.
        learn_tokenizer: (lines, size, min_count) → a tokenizer, where no checkpoint has one; by
            default word pieces are learned.
        build: (settings, `DataConfig`, `Vocabulary`) → the encoder, without values.
        read_settings: config.json of a checkpoint → its settings, by our names; None for a family
            that cannot start from any.
        read_checkpoint: folder → the pre-trained weights in it, with their `config` and
            `tokenizer`; None for a family that cannot start from any.
        load_checkpoint: (encoder, weights) sets the encoder's values.
        checkpoint_of: (encoder, tokenizer) → the weights as `read_checkpoint` gives them.
        write_checkpoint: writes them, as that of `checkpoints.huggingface` does, which alone takes
            more; None where no layout has a place for them.
        sizes: the settings below `model` in which a model and its start must agree.
        graph: (`onnx.graph.Graph`, encoder) → the values of states and pooled in the graph; None
            for a family that cannot be exported.
    """

    name: str
    config: Callable[..., ModelConfig]
    has_pieces: bool
    build: Callable[..., Encoder]
    learn_tokenizer: Optional[Callable[..., Tokenizer]] = None
    read_settings: Optional[Callable[[Path], Mapping[str, Any]]] = None
    read_checkpoint: Optional[Callable[[str], Any]] = None
    load_checkpoint: Optional[Callable[[Any, Any], None]] = None
    checkpoint_of: Optional[Callable[[Any, Tokenizer], Any]] = None
    write_checkpoint: Optional[Callable[..., None]] = None
    sizes: Tuple[str, ...] = ()
    graph: Optional[Callable[[Any, Any], Tuple[str, str]]] = None
    title: str = ""
