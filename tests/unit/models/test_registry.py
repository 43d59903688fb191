"""A new encoder needs a description and a line in the registry; no encoder takes unknown ids."""

from dataclasses import dataclass, replace

import mxnet as mx
import numpy as np
import pytest
from mxnet.gluon import nn
from support.models import predictions_of, random_batch, tiny, tiny_model
from support.refusals import one_sentence

from edp_mx.attacks.training import train_prepared
from edp_mx.config import ExperimentConfig, dump_config, load_config
from edp_mx.data.corpus import load_corpus
from edp_mx.errors import UserError
from edp_mx.models.encoder import Encoder, Family, ModelConfig
from edp_mx.models.registry import FAMILIES, read_start
from edp_mx.runs.build import vocabulary_for
from edp_mx.runs.prepare import prepare_corpus
from edp_mx.runtime.distributed import start

SETTINGS = """
data: {corpus: communication, size: 60, vocabulary: {source: sample}, labels: {source: sample}}
model: {family: toy, size: 6}
privacy: {mechanism: dp_sgd, noise_multiplier: 0.5, insecure_fixed_seed: 1}
training: {epochs: 1, batch_size: 9, learning_rate: 0.02}
"""


@dataclass(frozen=True)
class ToyConfig(ModelConfig):
    family: str = "toy"
    size: int = 4
    checkpoint: str = "pretrained"


class ToyEncoder(Encoder):
    """A token's vector, through one layer; the utterance's is that of its first token."""

    def __init__(self, config, *, num_words):
        super().__init__(prefix="toy_")
        self.output_size = config.size
        with self.name_scope():
            self.words = nn.Embedding(num_words, config.size, prefix="words_")
            self.layer = nn.Dense(config.size, flatten=False, in_units=config.size, prefix="layer_")

    def inputs(self, batch, context):
        return (mx.nd.array(batch.inputs.words, ctx=context, dtype="int32"),)

    def hybrid_forward(self, F, words):
        states = F.tanh(self.layer(self.words(words)))  # (N, T, H)
        return states, F.squeeze(F.slice_axis(states, axis=1, begin=0, end=1), axis=1)


class PretrainedBias:
    """A checkpoint, of a single number."""

    config = ToyConfig()
    value = 7.0


TOY = Family(
    name="toy",
    config=ToyConfig,
    has_pieces=False,
    build=lambda config, data, vocabulary: ToyEncoder(config, num_words=len(vocabulary.words)),
    read_checkpoint=lambda folder: PretrainedBias(),
    load_checkpoint=lambda encoder, start: encoder.layer.bias.set_data(
        mx.nd.full((encoder.output_size,), start.value)
    ),
)


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.setitem(FAMILIES, "toy", TOY)
    (tmp_path / "toy.yaml").write_text(SETTINGS)
    return load_config(tmp_path / "toy.yaml")


def test_its_settings_are_read_and_written(config, tmp_path):
    assert config.model == ToyConfig(size=6)
    (tmp_path / "again.yaml").write_text(dump_config(config))
    assert load_config(tmp_path / "again.yaml") == config


@pytest.mark.parametrize("clipping", ["loop", "ghost"])
def test_it_is_trained_by_the_names_of_a_configuration(config, tmp_path, clipping):
    config = load_config(tmp_path / "toy.yaml", [f"privacy.clipping={clipping}"])
    workers = start()
    prepared = prepare_corpus(load_corpus(config.data), config, workers)
    parameters = prepared.model.encoder.collect_params()
    assert (parameters["toy_layer_bias"].data() == PretrainedBias.value).asnumpy().all()
    before = {name: values.data().asnumpy().copy() for name, values in parameters.items()}
    train_prepared(prepared, config, workers, tmp_path / "run", lambda steps, *_: steps)
    assert all((before[name] != p.data().asnumpy()).any() for name, p in parameters.items())


def test_what_a_family_does_not_have(config):
    encoder = TOY.build(config.model, config.data, vocabulary_for(config, load_corpus(config.data)))
    one_sentence("has no word vectors", encoder.set_word_vectors, np.zeros((3, 4)))
    assert read_start(ExperimentConfig().model) is None
    error = (
        r"model\.start_from: there is a checkpoint in Hugging Face's layout, .* no clc can start"
    )
    one_sentence(error, read_start, replace(ExperimentConfig().model, start_from="there"))


@pytest.mark.parametrize(
    ("family", "field", "value", "told"),
    [
        ("clc", "words", 11, "words: id 11"),
        ("clc", "words", -1, "words: id -1"),
        ("clc", "characters", 9, "characters: id 9"),
        ("clc", "lengths", 0, "lengths"),
        ("clc", "lengths", 5, "lengths"),
        ("clc", "slots", 5, "slots: id 5"),
        ("clc", "intents", 3, "intents: id 3"),
        ("bert", "pieces", 12, "pieces: id 12"),
        ("bert", "lengths", 40, "lengths"),
        ("bert", "firsts", 40, "first pieces: id 40"),
    ],
)
def test_a_model_refuses_ids_that_it_does_not_know(family, field, value, told):
    batch = random_batch(np.random.default_rng(0), [4, 2], family)
    of_inputs = hasattr(batch.inputs, field)
    changed = with_first(batch.inputs if of_inputs else batch, field, value)
    one_sentence(told, tiny(family).loss, replace(batch, inputs=changed) if of_inputs else changed)


def test_a_bert_refuses_more_pieces_than_positions():
    batch = random_batch(np.random.default_rng(0), [4, 2], "bert")
    with pytest.raises(UserError, match="model.max_positions is 3; lower data.max_pieces"):
        tiny("bert", max_positions=3).loss(batch)


def with_first(record, field, value):
    """The same with the first entry of one array changed."""
    array = getattr(record, field).copy()
    array[(0,) * array.ndim] = value
    change = {field: array}
    return record._replace(**change) if hasattr(record, "_replace") else replace(record, **change)


def test_labels_at_padding_and_unknown_labels_do_not_matter_to_predict():
    batch, model = random_batch(np.random.default_rng(1), [4, 2]), tiny_model()
    slots = batch.slots.copy()
    slots[1, 2:] = -100
    assert (model.loss(batch).asnumpy() == model.loss(replace(batch, slots=slots)).asnumpy()).all()
    predictions_of(model, replace(batch, slots=slots + 99, intents=batch.intents + 99))
