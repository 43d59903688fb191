"""Small models of all families, and batches for them."""

import json
from dataclasses import replace
from types import SimpleNamespace

import mxnet as mx
import numpy as np
from mxnet import autograd
from subjects import part  # noqa: F401 (tests take it from here)

from edp_mx.data.batching import Batch, PieceInputs, WordInputs
from edp_mx.data.encoding import encode
from edp_mx.data.synthetic import make_utterances
from edp_mx.data.vocabulary import Vocabulary
from edp_mx.dp.weights import save_weights
from edp_mx.models.bert import BERTConfig
from edp_mx.models.bert_encoder import BERTEncoder
from edp_mx.models.clc import CLCConfig, CLCEncoder
from edp_mx.models.frozen import freeze
from edp_mx.models.gpt2.config import GPT2Config
from edp_mx.models.gpt2.decoder import GPT2
from edp_mx.models.gpt2.encoder import GPT2Encoder
from edp_mx.models.lora import LoRA
from edp_mx.tasks.intent_slot.model import IntentSlotModel
from edp_mx.tasks.model import draw_values, probabilities

FAMILIES = ("clc", "bert", "gpt2")
SIZES = {"num_words": 11, "num_pieces": 12, "num_characters": 9, "num_slots": 5, "num_intents": 3}
TINY = {"character_dimension": 4, "character_filters": 3, "hidden_size": 6, "dropout": 0.0}


TINY_BERT = {"num_layers": 2, "num_heads": 2, "hidden_size": 8, "intermediate_size": 10,
             "max_positions": 32, "dropout": 0.0}  # fmt: skip


MASK_PLACE = -2  # of the piece that stands for [MASK]: the last before [SEP]


def tiny_model(*, seed=3, is_embedding_trainable=True, word_vectors=None, **config):
    """A CLC small enough for finite differences."""
    config = CLCConfig(**{**TINY, **config})
    encoder = CLCEncoder(
        config,
        num_words=SIZES["num_words"],
        num_characters=SIZES["num_characters"],
        word_dimension=5 if word_vectors is None else word_vectors.shape[1],
        is_embedding_trainable=is_embedding_trainable,
        prefix="clc_",
    )
    model = with_heads(encoder, seed=seed)
    if word_vectors is not None:
        encoder.set_word_vectors(word_vectors)
    return model


def tiny_bert(*, seed=3, **config):
    """A BERT small enough for finite differences."""
    config = BERTConfig(**{**TINY_BERT, **config})
    place = MASK_PLACE if config.intents == "infilling" else None
    encoder = BERTEncoder(config, num_pieces=SIZES["num_pieces"], mask_place=place, prefix="bert_")
    freeze(encoder, config)
    return with_heads(encoder, seed=seed)


def tiny_gpt2(*, seed=3, **config):
    """A GPT-2 small enough for finite differences."""
    config = GPT2Config(**{**TINY_BERT, **config})
    encoder = GPT2Encoder(GPT2(config, num_pieces=SIZES["num_pieces"], prefix="gpt2_"))
    freeze(encoder, config)
    return with_heads(encoder, seed=seed)


def tiny_adapted_bert(*, is_drawn=True, **config):
    """A BERT whose low-rank adapters are trained, by default with values in both matrices."""
    model = tiny_bert(trained="lora", **{"lora_rank": 2, **config})
    generator = np.random.default_rng(5)
    for name, parameter in model.collect_params().items():
        if is_drawn and LoRA().trains(name):
            parameter.set_data(mx.nd.array(generator.normal(0, 0.5, parameter.shape)))
    return model


def tiny(family, **config):
    """A small model of a family."""
    return {"clc": tiny_model, "bert": tiny_bert, "gpt2": tiny_gpt2}[family](**config)


def with_heads(encoder, *, seed=3, num_slots=SIZES["num_slots"], num_intents=SIZES["num_intents"]):
    """A whole model around an encoder."""
    model = IntentSlotModel.upon_labels(encoder, num_slots=num_slots, num_intents=num_intents)
    draw_values(model, seed=seed, context=mx.cpu())
    return model


def predictions_of(model, batch):
    """The most likely intents and slots of a batch, with their probabilities."""
    ((_, emissions, scores),) = model.outputs([batch])
    slots, confidences = model.slot.crf.decode(emissions, batch.lengths)
    return SimpleNamespace(
        slots=slots,
        slot_confidences=confidences,
        intents=scores.argmax(axis=1),
        intent_probabilities=probabilities(scores),
    )


def clc_and_corpus(*, size, dropout):
    """A small CLC, and an encoded corpus whose vocabulary is its own, sorted by length."""
    utterances = sorted(
        make_utterances("communication", size=size, seed=1), key=lambda one: len(one.tokens)
    )
    vocabulary = Vocabulary.build(utterances)
    encoder = CLCEncoder(
        CLCConfig(hidden_size=8, character_filters=4, dropout=dropout),
        num_words=len(vocabulary.words),
        num_characters=len(vocabulary.characters),
        word_dimension=8,
        prefix="clc_",
    )
    model = with_heads(
        encoder, seed=0, num_slots=len(vocabulary.slots), num_intents=len(vocabulary.intents)
    )
    return model, encode(utterances, vocabulary)


def random_inputs(rng, lengths, family, num_characters=4):
    """Random ids, padded with 0, that fit `SIZES`."""
    shape = (len(lengths), int(lengths.max()))
    mask = np.arange(shape[1]) < lengths[:, None]
    spelled = np.arange(num_characters) < rng.integers(1, num_characters + 1, (*shape, 1))
    characters = rng.integers(1, SIZES["num_characters"], (*shape, num_characters))
    if family == "clc":
        return WordInputs(
            words=(rng.integers(1, SIZES["num_words"], shape) * mask).astype(np.int32),
            characters=(characters * spelled * mask[:, :, None]).astype(np.int32),
        )
    rows, firsts = [], np.zeros(shape, np.int32)
    for row, length in enumerate(lengths):
        pieces = [1]  # stands for [CLS]
        for token in range(length):
            firsts[row, token] = len(pieces)
            pieces += rng.integers(3, SIZES["num_pieces"], rng.integers(1, 4)).tolist()
        rows.append([*pieces, 2])  # stands for [SEP]
    widths = np.array([len(row) for row in rows], np.int32)
    filled = [row + [0] * (widths.max() - len(row)) for row in rows]
    return PieceInputs(np.array(filled, np.int32), widths, firsts)


def random_batch(rng, lengths, family="clc"):
    """Random ids and labels, padded with 0, that fit `SIZES`."""
    lengths = np.asarray(lengths)
    inputs = random_inputs(rng, lengths, family)
    shape = (len(lengths), int(lengths.max()))
    mask = np.arange(shape[1]) < lengths[:, None]
    return Batch(
        inputs=inputs,
        lengths=lengths,
        slots=(rng.integers(0, SIZES["num_slots"], shape) * mask).astype(np.int32),
        intents=rng.integers(0, SIZES["num_intents"], len(lengths)).astype(np.int32),
        indices=np.arange(len(lengths)),
    )


def padded(batch, tokens=2, characters=3):
    """The same utterances with more padding."""
    more = ((0, 0), (0, tokens))
    if isinstance(batch.inputs, PieceInputs):
        pieces, lengths, firsts = batch.inputs
        inputs = PieceInputs(np.pad(pieces, more), lengths, np.pad(firsts, more))
    else:
        words, spelled = batch.inputs
        inputs = WordInputs(np.pad(words, more), np.pad(spelled, (*more, (0, characters))))
    return replace(batch, inputs=inputs, slots=np.pad(batch.slots, more))


def outputs(model, batch):
    """States (N, T, H) and pooled (N, H)."""
    return [out.asnumpy() for out in model.encoder(*model.encoder.inputs(batch, mx.cpu()))]


def loss_and_gradients(model, batch, weights=None):
    """Loss (N,) and the gradient of its weighted sum by every trainable parameter."""
    with autograd.record():
        loss = model.loss(batch)
    loss.backward(mx.nd.array(np.ones(len(batch.lengths)) if weights is None else weights))
    gradients = {
        name: parameter.grad().asnumpy().copy()
        for name, parameter in model.collect_params().items()
        if parameter.grad_req != "null"
    }
    return loss.asnumpy(), gradients


def central_difference(parameter, way, value):
    """How much `value()` changes along `way`, from one step before the parameter to one after."""
    start, found = parameter.data().asnumpy(), []
    for sign in (1, -1):
        parameter.set_data(mx.nd.array(start + sign * way))
        found.append(float(value()))
    parameter.set_data(mx.nd.array(start))
    return found[0] - found[1]


def leave_run(found, settings, folder):
    """What is read of a finished run; its parameters are one more than those that were prepared."""
    for parameter in found.model.collect_params().values():
        parameter.set_data(parameter.data() + 1)
    folder.mkdir()
    (folder / "config.yaml").write_text(settings.read_text())
    (folder / "vocabulary.json").write_text(json.dumps(found.vocabulary.to_json()))
    save_weights(found.model, folder / "weights.npz")
    return folder
