"""What the benchmarks train: a CLC, a BERT or a GPT-2 on a synthetic batch."""

from dataclasses import replace
from functools import partial
from typing import Any, Iterator, Optional, Tuple, Union

import mxnet as mx
import numpy as np

from edp_mx.data.batching import Batch, PieceInputs, WordInputs
from edp_mx.data.byte_level_bpe import ByteLevelBPE
from edp_mx.data.stored_states import StoredStates
from edp_mx.dp.privacy.clipping import Losses
from edp_mx.dp.privacy.flat import FlatGradients
from edp_mx.dp.privacy.layers import layers_of
from edp_mx.dp.unit_losses import seed_dropout
from edp_mx.models.bert import BERTConfig
from edp_mx.models.bert_encoder import BERTEncoder
from edp_mx.models.clc import CLCConfig, CLCEncoder
from edp_mx.models.encoder import Encoder
from edp_mx.models.frozen import freeze, frozen_part
from edp_mx.models.gpt2.config import GPT2Config
from edp_mx.models.gpt2.decoder import GPT2
from edp_mx.models.gpt2.encoder import GPT2Encoder
from edp_mx.runtime.distributed import Workers
from edp_mx.tasks.causal_lm.model import CausalLM
from edp_mx.tasks.intent_slot.model import IntentSlotModel
from edp_mx.tasks.model import TaskModel, cross_entropy, draw_values

WORDS, WORD_DIMENSION, LETTERS, CHARACTERS = 5_000, 300, 80, 12
SLOTS, INTENTS = 120, 20
_LOOKED_UP = ("words_weight", "embedding_weight", "embedding0_weight", "position_weight")
PIECES = {"bert": 30_522, "gpt2": 8_000}
SMALL_GPT2 = {"num_layers": 6, "num_heads": 4, "hidden_size": 256, "intermediate_size": 1024}
EXAMPLES, TOKENS, SHORTEST = 64, 24, 6  # utterances, and the tokens of the longest and shortest


def synthetic_batch(
    family: str,
    *,
    examples: int = EXAMPLES,
    tokens: int = TOKENS,
    shortest: int = SHORTEST,
    seed: int = 0,
    num_pieces: int = 0,
) -> Batch:
    """Draw utterances of `shortest` to `tokens` tokens; for BERT and GPT-2 a token is one piece."""
    generator = np.random.default_rng(seed)
    lengths = generator.integers(min(shortest, tokens), tokens + 1, examples).astype(np.int32)
    lengths[0] = tokens
    shape = (examples, tokens)
    mask = np.arange(tokens) < lengths[:, None]  # (N, T)

    def ids(first: int, end: int) -> np.ndarray:
        return (generator.integers(first, end, shape) * mask).astype(np.int32)

    if family == "clc":
        spelled = generator.integers(2, LETTERS, (*shape, CHARACTERS)) * mask[:, :, None]
        inputs = WordInputs(words=ids(2, WORDS), characters=spelled.astype(np.int32))
    else:
        num_pieces = num_pieces or PIECES[family]
        pieces = np.pad(ids(num_pieces // 30, num_pieces), ((0, 0), (1, 1)))  # (N, T+2)
        pieces[:, 0] = 1  # stands for [CLS]
        pieces[np.arange(examples), lengths + 1] = 2  # stands for [SEP]
        firsts = (np.arange(1, tokens + 1) * mask).astype(np.int32)
        inputs = PieceInputs(pieces, lengths + 2, firsts)
    return Batch(
        inputs=inputs,
        lengths=lengths,
        slots=ids(0, SLOTS),
        intents=generator.integers(0, INTENTS, examples).astype(np.int32),
        indices=np.arange(examples),
    )


def paper_model(family: str, *, num_pieces: int = 0, **settings: Any) -> TaskModel:
    """Return a new CLC, whose word vectors are trained too, BERT or small GPT-2.

    `settings` stand below `model:`; a negative `frozen_layers` is how many are not frozen.
    """
    kind = {"clc": CLCConfig, "bert": BERTConfig, "gpt2": GPT2Config}[family]
    settings = {**(SMALL_GPT2 if kind is GPT2Config else {}), **settings}
    if settings.get("frozen_layers", 0) < 0:
        settings["frozen_layers"] += settings.get("num_layers", kind.num_layers)
    num_pieces = num_pieces or PIECES.get(family, 0)
    config = kind(**settings)
    encoder: Encoder
    if isinstance(config, GPT2Config):
        encoder = GPT2Encoder(GPT2(config, num_pieces=num_pieces, prefix="gpt2_"))
    elif isinstance(config, CLCConfig):
        encoder = CLCEncoder(
            config,
            num_words=WORDS,
            num_characters=LETTERS,
            word_dimension=WORD_DIMENSION,
            is_embedding_trainable=True,
            prefix="clc_",
        )
    else:
        encoder = BERTEncoder(config, num_pieces=num_pieces, prefix="bert_")
    freeze(encoder, config)
    model: TaskModel
    if family == "gpt2":
        names = ("<|endoftext|>", *map(str, range(1, num_pieces)))
        model = CausalLM(encoder.next_piece_scorer(), ByteLevelBPE(names, ()))
    else:
        model = IntentSlotModel.upon_labels(encoder, num_slots=SLOTS, num_intents=INTENTS)
    draw_values(model, seed=0, context=mx.cpu())
    return model


def product_flops(model: TaskModel, batch: Batch) -> float:
    """Return the floating-point operations of a step's matrix products, forward and backward.

    A product of (M, K) and (K, N) has 2·M·K·N; the gradients of both sides are two more like it.
    The CLC reads the tokens alone; a BERT pads its pieces.
    """
    inputs, (examples, tokens) = batch.inputs, batch.slots.shape
    is_padded = isinstance(inputs, PieceInputs)
    positions = inputs.pieces.size if is_padded else int(batch.lengths.sum())
    flops = 0.0
    for name, parameter in model.collect_params().items():
        rows = {"intent": examples, "slot": examples * tokens}.get(name.split("_")[0], positions)
        if "convolution" in name:
            rows = inputs.characters.size
        is_multiplied = name.endswith("weight") and not name.endswith(_LOOKED_UP)
        flops += 6.0 * rows * np.prod(parameter.shape) * is_multiplied
        if name.endswith("ffn_1_weight"):  # a layer, whose attention multiplies keys and values
            flops += 6.0 * 2 * positions * inputs.pieces.shape[1] * parameter.shape[1]
    return flops


def above_frozen(model: TaskModel, batch: Batch) -> Tuple[TaskModel, Batch]:
    """Return what is above the frozen layers at the bottom, and the batch as they leave it."""
    frozen = frozen_part(model.encoder)
    assert frozen is not None
    states, counts = frozen.states(batch)
    stored = StoredStates.write([(batch.indices, counts, states)], num_utterances=len(batch))
    rest = model.upon(frozen.rest)
    rest.hybridize(static_alloc=True)
    return rest, replace(batch, inputs=stored.inputs(batch.indices, batch.inputs))


class Subject:
    """A model with a batch to train on; if it is without its CRF, this is frozen."""

    def __init__(
        self, model: TaskModel, batch: Batch, *, workers: Workers, has_crf: bool = True
    ) -> None:
        self.model = model
        self.batch = batch
        self.workers = workers
        self._has_crf = has_crf
        if not has_crf:
            self.model.slot.crf.collect_params().setattr("grad_req", "null")
        self.flat = FlatGradients(layers_of(self.model))

    def losses(self, batch: Optional[Batch] = None) -> mx.nd.NDArray:
        """Return the loss of each example, (N,), of its batch or a part; dropout as in training."""
        batch = self.batch if batch is None else batch
        seed_dropout(0, self.workers.rank)
        if self._has_crf:
            return self.model.loss(batch)
        emissions, intent_scores = self.model(batch)  # (N, T, K), (N, I)
        likely = mx.nd.pick(mx.nd.log_softmax(emissions), mx.nd.array(batch.slots))  # (N, T)
        mask = mx.nd.array(batch.mask.astype(np.float32))  # (N, T)
        return cross_entropy(intent_scores, batch.intents) - (likely * mask).sum(axis=1)

    def mean_loss(self) -> mx.nd.NDArray:
        """Return the loss of its batch as one micro-batch, (1,)."""
        return self.losses().sum() / len(self.batch)

    def chunks(self, size: int) -> Iterator[Losses]:
        """Yield functions that compute the losses of `size` examples each."""
        if size >= len(self.batch):
            yield self.losses
            return
        everybody = np.arange(len(self.batch))
        for start in range(0, len(self.batch), size):
            yield partial(self.losses, part(self.batch, everybody[start : start + size]))


def part(batch: Batch, rows: np.ndarray) -> Batch:
    """Return some of a batch's utterances without the padding that they no longer need."""
    rows = np.atleast_1d(rows)
    tokens = int(batch.lengths[rows].max())
    inputs: Union[WordInputs, PieceInputs]
    if isinstance(batch.inputs, PieceInputs):
        pieces, lengths, firsts = (array[rows] for array in batch.inputs)
        inputs = PieceInputs(pieces[:, : lengths.max()], lengths, firsts[:, :tokens])
    else:
        inputs = WordInputs(*(array[rows, :tokens] for array in batch.inputs))
    return Batch(
        inputs=inputs,
        lengths=batch.lengths[rows],
        slots=batch.slots[rows, :tokens],
        intents=batch.intents[rows],
        indices=batch.indices[rows],
        is_cut=None if batch.is_cut is None else batch.is_cut[rows],
    )
